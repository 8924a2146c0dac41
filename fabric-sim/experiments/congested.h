// Fabrics with marking queues and senders that slow down, and the policies that are compared there.
#pragma once

#include <array>

#include "fabric-sim/experiments/experiment.h"
#include "fabric-sim/experiments/flows.h"

namespace cepheus::sim {

struct CnpFilter {
  const char* name;  // as in the topology file
  net::CnpPolicy policy;
  wire::Duration window = wire::times::kSwitchCnpWindow;
  bool has_sender_groups = false;  // multicasts are sender groups
};
inline constexpr CnpFilter kAllCnps = {"all", net::CnpPolicy::kAll};                 // MC-RDMA's
inline constexpr CnpFilter kWorstPath = {"worst-path", net::CnpPolicy::kWorstPath};  // Cepheus's
inline constexpr CnpFilter kTmcf = {"tmcf", net::CnpPolicy::kTmcf};
inline constexpr CnpFilter kPapersTmcf = {"tmcf 50 us", net::CnpPolicy::kTmcf,
                                          std::chrono::microseconds(50)};
inline constexpr CnpFilter kSendersAll = {
    .name = "all, sender groups", .policy = net::CnpPolicy::kAll, .has_sender_groups = true};
inline constexpr CnpFilter kSendersWorstPath = {.name = "worst-path, sender groups",
                                                .policy = net::CnpPolicy::kWorstPath,
                                                .has_sender_groups = true};
inline constexpr CnpFilter kSendersTmcf = {
    .name = "tmcf, sender groups", .policy = net::CnpPolicy::kTmcf, .has_sender_groups = true};
inline constexpr std::array kCnpFilters = {kAllCnps, kWorstPath, kTmcf, kPapersTmcf};
// The pages name worst-path as the default.
static_assert(net::Rules().cnp_policy == kWorstPath.policy);

// `topology` with queues that mark from 50,000 to `kmax` bytes, up to one frame in a hundred.
// Throws std::invalid_argument if options.congestion is invalid. The rate is that of the first
// host; other settings are in `config`.
Testbed congested_testbed(net::Topology topology, const CnpFilter& filter,
                          const ExperimentOptions& options, TestbedConfig config = {},
                          wire::Bytes kmax = 500'000);

// The same flows, with multicasts of the filter's kind of groups.
std::vector<FlowPlan> with_groups_of(const CnpFilter& filter, std::vector<FlowPlan> flows);

// Two racks of four hosts, with a third switch between: A1 to D1 are hosts 0 to 3, A2 to D2 4 to 7.
net::Topology two_racks_of_four();

// Draws a flow's rate over time, x in ms, with a point for each `every`.
void draw_curve(Report& report, const std::string& series, const FlowRates& rates, std::size_t flow,
                wire::Duration every);

double milliseconds(wire::Duration time);

}  // namespace cepheus::sim
