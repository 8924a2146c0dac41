// Sender groups (docs/protocol.md) in a fabric's status: as JSON, and as `cepheusctl groups` shows them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "switch-emulator/live/status.h"

namespace cepheus::live {

nlohmann::json sender_group_to_json(const fabric::SenderGroupView& group);
// Throws nlohmann::json::exception if it is none.
fabric::SenderGroupView sender_group_from_json(const nlohmann::json& in);

// Each group, then what each switch does with it; "" if there are none.
std::string sender_groups_text(const FabricStatus& status, bool colour);

}  // namespace cepheus::live
