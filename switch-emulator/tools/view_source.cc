#include "switch-emulator/tools/view_source.h"

#include <chrono>
#include <nlohmann/json.hpp>

namespace cepheus::tools {

constexpr double kForgetSeconds = 5;

wire::Result<nlohmann::json> ViewSource::look() {
  const auto before = std::exchange(before_, std::nullopt);
  auto status = live::request_status(fabric_socket_);
  if (!status) return tl::unexpected(status.error());
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  before_ = live::Snapshot{std::move(*status), std::chrono::duration<double>(since_boot).count()};
  const bool is_recent = before && before_->seconds - before->seconds <= kForgetSeconds;
  return live::fabric_view(*before_, is_recent ? &*before : nullptr);
}

}  // namespace cepheus::tools
