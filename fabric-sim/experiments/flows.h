// Programs that send without end, to one or to many hosts, and their rates.
#pragma once

#include <string>
#include <vector>

#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {

// A multicast if it has several receivers. Hosts are the network's indices; times count from the
// start of the measurement.
struct FlowPlan {
  std::string name;
  std::size_t from = 0;
  std::vector<std::size_t> to;
  wire::Duration begin{0};
  wire::Duration end = wire::Duration::max();
  std::uint32_t turn = 0;        // bytes after which the next member sends; 0: `from` alone sends
  bool is_sender_group = false;  // MC-RDMA's multicast, to 16 at most, instead of Cepheus's
};

// Of each flow, in each interval: the data that all its receivers have and its sender has as
// acknowledged, in Gb/s on the wire.
class FlowRates {
 public:
  FlowRates(wire::Duration every, std::vector<std::vector<double>> gigabits)
      : every_(every), gigabits_(std::move(gigabits)) {}

  wire::Duration every() const { return every_; }
  std::size_t intervals() const { return gigabits_.empty() ? 0 : gigabits_[0].size(); }
  double at(std::size_t flow, std::size_t interval) const { return gigabits_[flow][interval]; }
  // Over the whole intervals of [from, to).
  double mean(std::size_t flow, wire::Duration from, wire::Duration to) const;

 private:
  wire::Duration every_;
  std::vector<std::vector<double>> gigabits_;
};

// Runs the flows until `until`. Throws std::runtime_error if a group can't be set up.
FlowRates measure_flows(Testbed& testbed, const std::vector<FlowPlan>& flows, wire::Duration until,
                        wire::Duration every);

// Jain's index of fairness: 1 if all are equal, 1/n if one flow has everything.
double fairness(const std::vector<double>& shares);

}  // namespace cepheus::sim
