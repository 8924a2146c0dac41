// A reduction group without operations under way waits for nobody: its switches and its members behind
// them outlive a silent device.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "fabric-sim/checked/reductions/reduction_program.h"
#include "fabric-sim/core/group_program.h"
#include "fabric-sim/core/network.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kIdleMembers = 4;
constexpr wire::MrpReduction kIdleKind{wire::MrpReduction::kValues, 256, 8};

ReductionPlan plan_of_idle_group() {
  ReductionPlan plan;
  plan.group.id = wire::McstId(198, 18, 0, 1);
  plan.group.epoch = 1;
  plan.group.loss_ends = true;
  for (std::size_t i = 0; i < kIdleMembers; ++i) plan.group.members.push_back({i, 0});
  plan.reduction = kIdleKind;
  plan.operations.assign(4, {});
  return plan;
}

// Two leaves with two members each, and a spine.
class IdleGroup : public testing::Test {
 protected:
  static net::Topology topology() {
    net::LinkConfig link;
    link.rate = wire::BitRate{25'000'000'000};
    link.delay = 2us;
    return net::leaf_spine(2, 1, kIdleMembers / 2, link);
  }
  void run(Duration time) { simulator_.run(simulator_.now() + time); }
  void silence_the_last_device(Duration time) {
    network_.host(kIdleMembers - 1).stall_nic(simulator_.now() + time);
  }
  // At all switches.
  std::uint64_t count(fabric::Counter counter) const {
    std::uint64_t sum = 0;
    for (const auto& node : network_.switches()) sum += node->engine().counters()[counter];
    return sum;
  }

  Simulator simulator_{10'000'000};
  Network network_{simulator_, topology(), std::vector<rnic::NicConfig>(kIdleMembers)};
};

TEST_F(IdleGroup, OutlivesASilentDevice) {
  Findings findings(simulator_);
  ReductionLedger ledger(plan_of_idle_group(), findings);
  const TransportPlan transport;
  std::vector<std::unique_ptr<ReductionProgram>> members;
  std::vector<wire::MrpMember> names;
  for (std::size_t i = 0; i < kIdleMembers; ++i) {
    members.push_back(
        std::make_unique<ReductionProgram>(simulator_, network_.host(i), ledger, i, transport, i));
    names.push_back(members.back()->member());
  }
  members[ledger.plan().group.leader]->lead(names);
  run(1s);
  ASSERT_TRUE(std::ranges::all_of(members, [](const auto& each) { return each->is_active(); }));

  silence_the_last_device(60s);
  run(60s);
  EXPECT_EQ(count(fabric::Counter::kReductionProbes), 0u);
  for (const auto& member : members) EXPECT_TRUE(member->begin(0));
  run(1s);
  EXPECT_TRUE(ledger.is_done());
  EXPECT_FALSE(findings.first()) << findings.first()->text;
}

// A member as libmcast has it: its lane has posted its receives, and its program looks.
class IdleMember final : public GroupProgram {
 public:
  IdleMember(Simulator& simulator, Host& host)
      : GroupProgram(simulator, host,
                     {.qpn = create_qp(host, kIdleKind.window, kIdleKind.window),
                      .control_port = 40000,
                      .token = 7,
                      .reduction = kIdleKind}) {
    engine().work().on_receive_posted();
    simulator.schedule(simulator.now(), *this, kLook);
  }
  // As if it had contributed.
  void begin() { engine().work().on_send_posted(1); }
  void on_event(Instant now, std::uint64_t what) override {
    if (what != kLook) return GroupProgram::on_event(now, what);
    engine().look_for_lagging_members(now, out());
    engine().look(now, out());
    carry_out();
    simulator().schedule(now + 100ms, *this, kLook);
  }

 private:
  static constexpr std::uint64_t kLook = 0;
  void on_change(Instant) override {}
};

TEST_F(IdleGroup, HasMembersThatRequestNothing) {
  std::vector<std::unique_ptr<IdleMember>> members;
  std::vector<wire::MrpMember> names;
  for (std::size_t i = 0; i < kIdleMembers; ++i) {
    members.push_back(std::make_unique<IdleMember>(simulator_, network_.host(i)));
    names.push_back(members.back()->member());
  }
  mrp::RegistrationConfig config;
  config.host = names[0].host;
  config.instance = 1;
  members[0]->lead(config, {wire::McstId(198, 18, 0, 1), 1}, names);
  const auto all_are_active = [&] {
    return std::ranges::all_of(members, [](const auto& each) { return each->is_active(); });
  };
  run(1s);
  ASSERT_TRUE(all_are_active());

  silence_the_last_device(120s);
  run(60s);
  EXPECT_EQ(count(fabric::Counter::kMrpComplain), 0u);
  EXPECT_EQ(count(fabric::Counter::kMrpQuery), 0u);
  EXPECT_TRUE(all_are_active());
  members[1]->begin();
  run(2s);
  EXPECT_GT(count(fabric::Counter::kMrpComplain), 0u);
  EXPECT_GT(count(fabric::Counter::kMrpQuery), 0u) << "the leader seeks late members";
}

}  // namespace
}  // namespace cepheus::sim
