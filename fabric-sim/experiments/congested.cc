// Hosts' downlinks and both directions of trunks get the marking queue; hosts' uplinks get none,
// because a host sends no more than its rate. Each switch gets the filter's policy and window.
// draw_curve() leaves out a last interval that is not whole.
#include "fabric-sim/experiments/congested.h"

#include <stdexcept>
#include <utility>

#include "net/shapes.h"
#include "nic-emulator/engine/congestion_text.h"

namespace cepheus::sim {

using namespace std::chrono_literals;

Testbed congested_testbed(net::Topology topology, const CnpFilter& filter,
                          const ExperimentOptions& options, TestbedConfig config,
                          wire::Bytes kmax) {
  const auto parsed = rnic::parse_congestion(options.congestion, topology.hosts.front().up.rate);
  if (!parsed) throw std::invalid_argument(parsed.error().text);
  config.congestion = *parsed;
  const net::EcnConfig ecn{.on = true, .kmin = 50'000, .kmax = kmax, .pmax = 0.01};
  for (net::HostSpec& host : topology.hosts) host.down.ecn = ecn;
  for (net::TrunkSpec& trunk : topology.trunks) trunk.ab.ecn = trunk.ba.ecn = ecn;
  for (net::SwitchSpec& node : topology.switches) {
    node.config.rules.cnp_policy = filter.policy;
    node.config.cnp_window = filter.window;
  }
  return {std::move(topology), config};
}

std::vector<FlowPlan> with_groups_of(const CnpFilter& filter, std::vector<FlowPlan> flows) {
  for (FlowPlan& flow : flows)
    flow.is_sender_group = filter.has_sender_groups && flow.to.size() > 1;
  return flows;
}

net::Topology two_racks_of_four() {
  net::Topology topology = net::leaf_spine(2, 1, 4, paper_link(100, 500ns));
  // Four links of 100 Gb/s act as one, because the choice of one for a flow is not measured.
  for (net::TrunkSpec& trunk : topology.trunks) {
    trunk.ab.rate.bits_per_second *= 4;
    trunk.ba.rate.bits_per_second *= 4;
  }
  return topology;
}

void draw_curve(Report& report, const std::string& series, const FlowRates& rates, std::size_t flow,
                wire::Duration every) {
  const wire::Duration end = rates.every() * static_cast<std::int64_t>(rates.intervals());
  for (wire::Duration at{0}; at + every <= end; at += every) {
    report.draw(series, milliseconds(at), rates.mean(flow, at, at + every), "Gb/s");
  }
}

double milliseconds(wire::Duration time) { return microseconds(time) / 1000; }

}  // namespace cepheus::sim
