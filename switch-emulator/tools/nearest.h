// Output of `cepheusctl nearest`: which of several RDMA devices is nearest to the cores of the
// calling process, by the rule of Cepheus's libraries.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "support/locality/machine.h"

namespace cepheus::tools {

// {"cores_at", "devices": [{"name", "at", "why"}]}, in the order of trial. "at" is empty if
// unknown; "why" is the reason if all earlier devices fail.
nlohmann::json nearest_json(const locality::Machine& machine,
                            const std::vector<std::string>& names);
std::string nearest_text(const nlohmann::json& found);

}  // namespace cepheus::tools
