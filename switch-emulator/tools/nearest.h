// Output of `cepheusctl nearest`: which of several RDMA devices is nearest to the cores of the
// calling process, by the rule of Cepheus's libraries.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/locality/device_choice.h"
#include "support/locality/machine.h"
#include "switch-emulator/live/status/printable.h"

namespace cepheus::tools {

// {"cores_at", "devices": [{"name", "at", "why"}]}, in the order of trial. "at" is empty if
// unknown; "why" is the reason if all earlier devices fail.
nlohmann::json nearest_json(const locality::Machine& machine,
                            const std::vector<std::string>& names);
std::string nearest_text(const nlohmann::json& found);

inline nlohmann::json nearest_json(const locality::Machine& machine,
                                   const std::vector<std::string>& names) {
  const locality::DeviceChoice choice(machine.topology(), machine.cores_of_process().get(), names);
  nlohmann::json devices = nlohmann::json::array();
  for (const std::size_t i : choice.order()) {
    devices.push_back({{"name", names[i]}, {"at", choice.places()[i].at}, {"why", choice.why(i)}});
  }
  return {{"cores_at", choice.cores_at()}, {"devices", std::move(devices)}};
}

inline std::string nearest_text(const nlohmann::json& found) {
  std::string text;
  for (const auto& device : found.at("devices")) {
    text += live::printable(device.at("name").get<std::string>()) + ": " +
            live::printable(device.at("why").get<std::string>()) + "\n";
  }
  return text;
}

}  // namespace cepheus::tools
