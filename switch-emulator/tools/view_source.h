// Consecutive views of a running fabric, with the traffic in between.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

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
  static constexpr double kForgetSeconds = 5;
  const std::string fabric_socket_;
  std::optional<live::Snapshot> before_;
};

inline wire::Result<nlohmann::json> ViewSource::look() {
  const auto before = std::exchange(before_, std::nullopt);
  auto status = live::request_status(fabric_socket_);
  if (!status) return tl::unexpected(status.error());
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  before_ = live::Snapshot{std::move(*status), std::chrono::duration<double>(since_boot).count()};
  const bool is_recent = before && before_->seconds - before->seconds <= kForgetSeconds;
  return live::fabric_view(*before_, is_recent ? &*before : nullptr);
}

}  // namespace cepheus::tools
