// Which times a topology may set for a switch: what the protocol's rules need of them
// (docs/protocol.md, "Timers"), beside each other and beside how long hosts wait (wire/times.h).
//
// For topologies from files: a simulated fabric has hosts with times of their own.
#pragma once

#include <optional>
#include <string>

#include "net/switch_config.h"

namespace cepheus::net {

struct TimeProblem {
  std::string setting;  // as the file calls it
  std::string text;     // what it breaks, and what to write instead
};

// The first setting that breaks a rule.
std::optional<TimeProblem> find_time_problem(const SwitchConfig& config);
// ... which of the fabric's HELLOs, 0 being none; "" if that holds.
std::string problem_of_hello(Duration hello);

}  // namespace cepheus::net
