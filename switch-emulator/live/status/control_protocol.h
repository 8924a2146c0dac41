// The control socket of a fabric: one JSON object a line, one answer a line, on <fabric
// socket>.ctl.
//
//   {"ask": "status"}                              -> {"ok": true, "status": {...}}
//   (live/status/status.h)
//   {"ask": "link", "link": "h1", "direction": "both", "loss": 0.2, "up": false}  -> {"ok": true}
//   (live/control/link_request.h)
//   {"ask": "record", "recorder": 17}              -> {"ok": true, "events": [...]}
//   (live/control/record_request.h)
//   {"ask": "kill", "host": "h1", "pid": 17}       -> {"ok": true}: the fabric kills that client of
//                                                     the host, if it is still its client
//   {"ask": "reset_counters"}                      -> {"ok": true}
//   {"ask": "reload"}                              -> {"ok": true, "changed": ["switch s0: ..."]}
//   {"ask": "stop"}                                -> {"ok": true}, then the fabric ends
//   anything else                                  -> {"ok": false, "error": "..."}
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "wire/result.h"

namespace cepheus::live {

// The fabric's socket, if neither --fabric nor CEPHEUS_FABRIC names one.
inline constexpr char kDefaultSocket[] = "/tmp/cepheus.sock";

nlohmann::json refusal(std::string_view why);                // {"ok": false, "error": why}
std::string control_path(const std::string& fabric_socket);  // "<socket>.ctl"
// Sends a request to a running fabric. Errors tell whether it is absent, did not answer, or
// refused. kFailed: this process can't make a socket, whatever the fabric does.
wire::Result<nlohmann::json> send_request(const std::string& fabric_socket,
                                          const nlohmann::json& request);

}  // namespace cepheus::live
