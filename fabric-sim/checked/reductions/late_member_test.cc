// Switches name the member that a reduction waits for, and no other.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fabric-sim/checked/reductions/reduction_program.h"
#include "fabric-sim/core/network.h"
#include "net/shapes.h"
#include "switch-emulator/engine/views.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMembers = 16;
constexpr Duration kLateBy = 1ms, kNoticed = 500us;
constexpr Duration kLongestPause = 100us;  // of the others
constexpr Duration kLookEvery = 50us;
constexpr wire::McstId kGroup{198, 18, 0, 1};

// Reductions of 16 members, without faults. One of them is late by 1 ms, once.
class LateMember {
 public:
  LateMember(std::uint64_t seed, std::size_t hosts_of_leaf)
      : random_(seed),
        network_(simulator_, topology(hosts_of_leaf), std::vector<rnic::NicConfig>(kMembers)),
        ledger_(plan(), findings_) {
    transport_.timeout_code = 12;  // longer than the member is late
    std::vector<wire::MrpMember> names;
    for (std::size_t i = 0; i < kMembers; ++i) {
      members_.push_back(std::make_unique<ReductionProgram>(simulator_, network_.host(i), ledger_,
                                                            i, transport_, random_.next()));
      names.push_back(members_.back()->member());
    }
    members_[ledger_.plan().group.leader]->lead(names);
  }

  void run() {
    const auto is_active = [](const auto& member) { return member->is_active(); };
    run_until([&] { return std::ranges::all_of(members_, is_active); });
    for (const auto& member : members_) ASSERT_TRUE(member->begin(0));
    run_until([&] {
      look();
      return ledger_.is_done();
    });
    ASSERT_FALSE(findings_.first()) << findings_.first()->text;
  }
  std::size_t late() const { return ledger_.plan().late_member; }
  // Hosts that switches named late. A trunk to a leaf with one host names that host.
  const std::set<std::size_t>& named() const { return named_; }

 private:
  static net::Topology topology(std::size_t hosts_of_leaf) {
    net::LinkConfig link;
    link.rate = wire::BitRate{25'000'000'000};
    link.delay = 2us;
    return net::leaf_spine(kMembers / hosts_of_leaf, 2, hosts_of_leaf, link);
  }
  ReductionPlan plan() {
    ReductionPlan plan;
    plan.group.id = kGroup;
    plan.group.epoch = 1;
    plan.group.loss_ends = true;
    plan.group.leader = random_.below(kMembers);
    for (std::size_t i = 0; i < kMembers; ++i) plan.group.members.push_back({i, 0});
    plan.reduction = {wire::MrpReduction::kValues, 256, 8};
    plan.operations.assign(4, {});
    plan.operations.push_back({mcast::ReductionUnits::kOr, 500});
    plan.longest_pause = kLongestPause;
    plan.late_member = random_.below(kMembers);
    plan.late_operation = random_.below(plan.operations.size());
    plan.late_by = kLateBy;
    return plan;
  }
  template <typename IsDone>
  void run_until(IsDone is_done) {
    const Instant end = simulator_.now() + 1s;
    while (!is_done() && !findings_.first()) {
      ASSERT_LT(simulator_.now(), end) << "the reductions don't end";
      ASSERT_NE(simulator_.run(simulator_.now() + kLookEvery), Simulator::End::kBudget);
    }
  }
  void look() {
    for (const auto& node : network_.switches()) {
      const auto group = node->engine().group(kGroup);
      if (!group) continue;
      for (const fabric::PathView& path : group->paths) {
        if (!path.late || simulator_.now() - path.late->since < kNoticed) continue;
        if (path.is_host) {
          named_.insert(path.host.value() - network_.host(0).address().value());
        } else {
          see_trunk(network_.peer_of(*node, path.port));
        }
      }
    }
  }
  void see_trunk(const SwitchNode& peer) {
    std::vector<std::size_t> behind;
    for (std::size_t i = 0; i < kMembers; ++i) {
      if (&network_.switch_of(i) == &peer) behind.push_back(i);
    }
    if (behind.size() == 1) named_.insert(behind[0]);
    const bool is_on_the_way = behind.empty() || &network_.switch_of(late()) == &peer;
    EXPECT_TRUE(is_on_the_way) << peer.name() << " is not the switch of the late member";
  }

  Random random_;
  Simulator simulator_{10'000'000};
  Findings findings_{simulator_};
  Network network_;
  TransportPlan transport_;
  ReductionLedger ledger_;
  std::vector<std::unique_ptr<ReductionProgram>> members_;
  std::set<std::size_t> named_;
};

// All members at one switch, four at a leaf, and one at a leaf. In the last case the late member's
// own leaf waits for nobody else, so only its neighbours can name it.
TEST(LateMembers, AreTheOnlyOnesThatSwitchesName) {
  for (const std::size_t hosts_of_leaf : {16, 4, 1}) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(std::to_string(hosts_of_leaf) + " hosts a leaf, seed " + std::to_string(seed));
      LateMember member(seed, hosts_of_leaf);
      member.run();
      ASSERT_EQ(member.named(), std::set<std::size_t>{member.late()});
    }
  }
}

}  // namespace
}  // namespace cepheus::sim
