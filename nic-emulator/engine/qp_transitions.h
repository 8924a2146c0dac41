// Which attributes each state transition of a queue pair requires and allows (IBTA vol. 1, 10.3 and
// 11.2.5.2).
#pragma once

#include "nic-emulator/engine/verbs_types.h"
#include "wire/result.h"

namespace cepheus::rnic {

// Refuses with a text that names the attribute or transition at fault.
wire::Result<void> check_transition(QpType type, QpState from, QpState to, std::uint32_t mask);
// Refuses values out of range among those the mask names.
wire::Result<void> check_values(const QpAttr& attr, std::uint32_t mask, std::uint32_t max_mtu);

}  // namespace cepheus::rnic
