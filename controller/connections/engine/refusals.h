// Counters of refusals, by name (refusals.def).
#pragma once

#include "wire/counter_table.h"

namespace cepheus::connections {

enum class Refusal : std::size_t {
#define CEPHEUS_COUNTER(id, name, help) id,
#include "controller/connections/engine/refusals.def"
  kCount,
};

inline constexpr std::array<wire::CounterText, static_cast<std::size_t>(Refusal::kCount)>
    kRefusalTexts{{
#define CEPHEUS_COUNTER(id, name, help) {name, help},
#include "controller/connections/engine/refusals.def"
    }};

using Refusals = wire::CounterValues<Refusal>;

}  // namespace cepheus::connections
