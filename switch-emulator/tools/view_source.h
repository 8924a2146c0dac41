// Consecutive views of a running fabric, with the traffic in between.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "switch-emulator/live/status/fabric_view.h"
#include "wire/result.h"

namespace cepheus::tools {

class ViewSource {
 public:
  explicit ViewSource(std::string fabric_socket) : fabric_socket_(std::move(fabric_socket)) {}
  // live::fabric_view() of now, with rates since the last call unless that is long ago. Errors have
  // the reason why there is none.
  wire::Result<nlohmann::json> look();

 private:
  const std::string fabric_socket_;
  std::optional<live::Snapshot> before_;
};

}  // namespace cepheus::tools
