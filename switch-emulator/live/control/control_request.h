// Requests at a fabric's control socket, checked. live/status/control_protocol.h has the JSON.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "wire/result.h"

namespace cepheus::live {

struct StatusRequest {};
struct LinkRequest {  // unset values stay unchanged
  std::string link;
  std::string direction = "both";
  std::optional<double> loss;  // probability per frame
  std::optional<bool> up;
};
struct RecordRequest {
  std::uint64_t recorder = 0;
  std::uint32_t packets_per_second = 20'000;
  bool end = false;
};
struct KillRequest {
  std::string host;
  pid_t pid = 0;
};
struct ResetCountersRequest {};
struct ReloadRequest {};
struct StopRequest {};
using ControlRequest = std::variant<StatusRequest, LinkRequest, RecordRequest, KillRequest,
                                    ResetCountersRequest, ReloadRequest, StopRequest>;

// kInvalid: the error and its remedy.
wire::Result<ControlRequest> parse_control_request(std::string_view line);

}  // namespace cepheus::live
