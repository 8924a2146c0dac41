// The times that a topology may set for a switch: the relations that the protocol's rules need
// (docs/protocol.md, "Timers"), among them and with the times of hosts (wire/times.h).
//
// For topologies from files; simulated hosts have their own times.
#pragma once

#include <optional>
#include <string>

#include "net/switch_config.h"

namespace cepheus::net {

struct TimeProblem {
  std::string setting;  // its name in the file
  std::string text;     // the rule that it breaks, and the value to write instead
};

// The first setting that breaks a rule.
std::optional<TimeProblem> find_time_problem(const SwitchConfig& config);
// ... among the settings of HELLOs, 0 being none; "" if all hold.
std::string problem_of_hello(Duration hello);

}  // namespace cepheus::net
