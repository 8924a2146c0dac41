// `cepheus-switch --check`: whether this machine can serve a topology's hosts by its interfaces, as
// JSON for `cepheus fabric-test --box`. Changes nothing.
#pragma once

#include <string>

#include "net/topology.h"

namespace cepheus::tools {

struct BoxReport {
  // [{"name", "interface", "verdict": "good" | "doubtful" | "unusable", "seen", "todo"}, ...]
  std::string json;
  bool is_usable = true;
};

BoxReport check_box(const net::Topology& topology);

}  // namespace cepheus::tools
