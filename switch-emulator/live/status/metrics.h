// A fabric's status for monitoring, in the text format of Prometheus (0.0.4): every reading of
// readings.h, and a few states.
//
//   cepheus_up                                      1: the fabric answers
//   cepheus_NAME                                    a reading of the fabric
//   cepheus_switch_NAME{switch}                     of a switch
//   cepheus_port_NAME{switch,port}                  of a port; "counters" that are 0 are left out
//   cepheus_link_NAME{switch,port,way}              of a port's two links, "in" to the switch
//   cepheus_group_NAME{switch,group,epoch}          of a group
//   cepheus_sender_group_NAME{switch,sender,qpn,epoch}
//
// NAME is the reading's, with "_total" for counters; times are in seconds.
#pragma once

#include <string>

#include "switch-emulator/live/status/status.h"

namespace cepheus::live {

// Limit of a page's samples: a fabric of thousands of ports and groups must not overload its
// monitoring. cepheus_metrics_left_out counts the omitted ones; groups are omitted first.
inline constexpr std::size_t kMaxSamples = 100'000;

std::string to_metrics(const FabricStatus& status, std::size_t max_samples = kMaxSamples);
// The page if no fabric answers, with the reason as a comment.
std::string metrics_without_fabric(const std::string& reason);

}  // namespace cepheus::live
