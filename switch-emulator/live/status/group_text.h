// One group's lines in a status for people: its state, its numbers, its tree.
#pragma once

#include <string>

#include "switch-emulator/live/status/status.h"

namespace cepheus::live {

// "source h0; waiting for h2 (12 packets); h1 waits for its turn"
std::string situation_text(const FabricStatus& status, const fabric::GroupView& group,
                           const HostNames& hosts, bool colour);
// All lines. `root`: the switch by which the data enters, which has the view `group`.
std::string group_text(const FabricStatus& status, const SwitchStatus& root,
                       const fabric::GroupView& group, const HostNames& hosts, bool colour);

}  // namespace cepheus::live
