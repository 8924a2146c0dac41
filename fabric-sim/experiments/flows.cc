// Three kinds of flow count whole messages: over a group, a connection, or a sender group. All are
// set up before the clock of the measurement starts. A flow begins and ends at the start of the
// interval that holds its time. A stopped flow still sends what it has posted, and that counts.
//
// Rates are computed from payload with the headers of full packets. mean() rounds its beginning up
// and its end down to whole intervals.
#include "fabric-sim/experiments/flows.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <numeric>

#include "fabric-sim/experiments/message_ends.h"
#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/sender_group.h"

namespace cepheus::sim {
namespace {

constexpr std::uint32_t kMessage = 128 << 10;
// Ethernet, IPv4, UDP, BTH and ICRC around a packet's payload.
constexpr double kHeaders = 14 + 20 + 8 + 12 + 4;

// One flow of a testbed, with its received bytes.
class Flow {
 public:
  virtual ~Flow() = default;
  virtual void start() = 0;
  virtual void stop() = 0;
  virtual std::uint64_t bytes() const = 0;
};

class MulticastFlow final : public Flow {
 public:
  MulticastFlow(Testbed& testbed, const FlowPlan& plan, wire::McstId id)
      : group_(testbed, members_of(plan), id), turn_(plan.turn) {}
  void start() override { turn_ > 0 ? group_.rotate(turn_) : group_.stream(0, kMessage); }
  void stop() override { group_.end_stream(); }
  std::uint64_t bytes() const override {
    return group_.streamed() * (turn_ > 0 ? turn_ : kMessage);
  }

 private:
  static std::vector<std::size_t> members_of(const FlowPlan& plan) {
    std::vector<std::size_t> members{plan.from};
    members.insert(members.end(), plan.to.begin(), plan.to.end());
    return members;
  }
  MulticastGroup group_;
  const std::uint32_t turn_;
};

class UnicastFlow final : public Flow {
 public:
  UnicastFlow(Testbed& testbed, const FlowPlan& plan)
      : channel_(testbed, plan.from, plan.to.front()) {
    channel_.source.on_acknowledged([this](Instant) {
      ++messages_;
      if (is_running_) channel_.source.send(kMessage);
    });
  }
  void start() override {
    is_running_ = true;
    for (std::uint32_t i = 0; i < kPostedMessages; ++i) channel_.source.send(kMessage);
  }
  void stop() override { is_running_ = false; }  // posted messages are still sent
  std::uint64_t bytes() const override { return messages_ * kMessage; }

 private:
  Channel channel_;
  bool is_running_ = false;
  std::uint64_t messages_ = 0;
};

class SenderGroupFlow final : public Flow {
 public:
  SenderGroupFlow(Testbed& testbed, const FlowPlan& plan, std::uint32_t number)
      : group_(testbed, plan.from, plan.to, number) {
    group_.on_acknowledged([this](Instant) {
      ++messages_;
      if (is_running_) group_.send(kMessage);
    });
    group_.begin();
    testbed.run_until([this] { return group_.is_ready(); });
  }
  void start() override {
    is_running_ = true;
    for (std::uint32_t i = 0; i < kPostedMessages; ++i) group_.send(kMessage);
  }
  void stop() override { is_running_ = false; }
  std::uint64_t bytes() const override { return messages_ * kMessage; }

 private:
  SenderGroup group_;
  bool is_running_ = false;
  std::uint64_t messages_ = 0;
};

std::vector<std::unique_ptr<Flow>> make_flows(Testbed& testbed,
                                              const std::vector<FlowPlan>& plans) {
  std::vector<std::unique_ptr<Flow>> flows;
  for (const FlowPlan& plan : plans) {
    const wire::McstId id(kFirstGroup.value() + static_cast<std::uint32_t>(flows.size()));
    if (plan.is_sender_group) {
      const auto number = static_cast<std::uint32_t>(flows.size());
      flows.push_back(std::make_unique<SenderGroupFlow>(testbed, plan, number));
    } else if (plan.to.size() > 1) {
      flows.push_back(std::make_unique<MulticastFlow>(testbed, plan, id));
    } else {
      flows.push_back(std::make_unique<UnicastFlow>(testbed, plan));
    }
  }
  return flows;
}

}  // namespace

double FlowRates::mean(std::size_t flow, wire::Duration from, wire::Duration to) const {
  const auto& of = gigabits_[flow];
  const auto first = static_cast<std::size_t>((from + every_ - wire::Duration(1)) / every_);
  const auto last = std::min(static_cast<std::size_t>(to / every_), of.size());
  assert(first < last);
  const double sum = std::accumulate(of.begin() + static_cast<std::ptrdiff_t>(first),
                                     of.begin() + static_cast<std::ptrdiff_t>(last), 0.0);
  return sum / static_cast<double>(last - first);
}

FlowRates measure_flows(Testbed& testbed, const std::vector<FlowPlan>& plans, wire::Duration until,
                        wire::Duration every) {
  const auto flows = make_flows(testbed, plans);
  const double mtu = testbed.network().host(0).nic().config().max_mtu;
  const double bits = (mtu + kHeaders) / mtu * 8;  // of a byte, on the wire
  std::vector<std::vector<double>> gigabits(plans.size());
  std::vector<std::uint64_t> counted(plans.size());
  Simulator& simulator = testbed.simulator();
  const Instant start = simulator.now();
  // Flows begin and end between two intervals.
  for (wire::Duration at{0}; at < until; at += every) {
    for (std::size_t f = 0; f < plans.size(); ++f) {
      if (plans[f].begin >= at && plans[f].begin < at + every) flows[f]->start();
      if (plans[f].end >= at && plans[f].end < at + every) flows[f]->stop();
    }
    simulator.run(start + at + every);
    for (std::size_t f = 0; f < plans.size(); ++f) {
      const std::uint64_t bytes = flows[f]->bytes();
      const auto came = static_cast<double>(bytes - counted[f]);
      counted[f] = bytes;
      gigabits[f].push_back(came * bits / static_cast<double>(every.count()));
    }
  }
  return {every, std::move(gigabits)};
}

double fairness(const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const double squares = std::inner_product(shares.begin(), shares.end(), shares.begin(), 0.0);
  return squares == 0 ? 1 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace cepheus::sim
