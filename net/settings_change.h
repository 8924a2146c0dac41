// How a topology differs from the one that a fabric runs, in words. Also the part of the difference
// that a running fabric can adopt without losing its groups: users, and all that
// SwitchConfig::take_settings() takes.
#pragma once

#include <string>
#include <vector>

#include "net/topology.h"

namespace cepheus::net {

struct SettingsChange {
  // Each as "switch s0: max_groups = 10", "users is no longer set".
  std::vector<std::string> taken;
  std::vector<std::string> needs_restart;
};

SettingsChange compare(const Topology& running, const Topology& next);
// `running` with the settings of `next` that it can adopt. Both have the same switches.
Topology with_settings(Topology running, const Topology& next);

}  // namespace cepheus::net
