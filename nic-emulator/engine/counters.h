// Named counters of a NIC, listed in counters.def. Each packet that is not delivered increments
// one.
#pragma once

#include "wire/counter_table.h"

namespace cepheus::rnic {

enum class Counter : std::size_t {
#define CEPHEUS_COUNTER(id, name, description) id,
#include "nic-emulator/engine/counters.def"
  kCount
};
inline constexpr wire::CounterText kCounterTexts[] = {
#define CEPHEUS_COUNTER(id, name, description) {name, description},
#include "nic-emulator/engine/counters.def"
};

// "rx_drop_icrc"
constexpr std::string_view name(Counter c) {
  return kCounterTexts[static_cast<std::size_t>(c)].name;
}

using Counters = wire::CounterValues<Counter>;

}  // namespace cepheus::rnic
