// What `cepheusctl nearest` says: which of several RDMA devices is nearest to the cores of whoever
// asks, as processes of his choose it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "support/locality/machine.h"

namespace cepheus::tools {

// {"cores_at", "devices": [{"name", "at", "why"}]}, the first to be tried first; "at" is empty where
// nothing is known, "why" is what is said if all before it can't serve.
nlohmann::json nearest_json(const locality::Machine& machine,
                            const std::vector<std::string>& names);
std::string nearest_text(const nlohmann::json& found);

}  // namespace cepheus::tools
