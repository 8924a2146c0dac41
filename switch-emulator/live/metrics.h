// A fabric's status for monitoring, in the text format of Prometheus (0.0.4). Names and help come
// from the counters' own tables.
//
//   cepheus_up                                      1: the fabric answers
//   cepheus_switch_COUNTER_total{switch}            every counter of a switch, those that are 0 too
//   cepheus_port_COUNTER_total{switch,port}         of a port; those that are not 0
//   cepheus_link_COUNTER_total{switch,port,way}     of a port's two links, "in" to the switch
//   cepheus_port_..., cepheus_link_..., cepheus_group_...{switch,group}   what counts otherwise
#pragma once

#include <string>

#include "switch-emulator/live/status.h"

namespace cepheus::live {

// Samples of one page at most: a fabric of thousands of ports and groups must not choke its
// monitoring. What does not fit is counted by cepheus_metrics_left_out; groups go first.
inline constexpr std::size_t kMaxSamples = 100'000;

std::string to_metrics(const FabricStatus& status, std::size_t max_samples = kMaxSamples);
// The page where no fabric answers, with the reason as a comment.
std::string metrics_without_fabric(const std::string& reason);

}  // namespace cepheus::live
