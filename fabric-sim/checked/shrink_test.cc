#include "fabric-sim/checked/shrink.h"

#include <gtest/gtest.h>

#include "fabric-sim/checked/group_scenario.h"
#include "fabric-sim/checked/run_seed.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

std::size_t messages_of(const ScenarioPlan& plan) {
  std::size_t count = 0;
  for (const GroupPlan& group : plan.groups) count += group.messages.size();
  return count;
}

PlanOptions without_gate() {
  PlanOptions options;
  options.fabrics = true;
  options.rules.gate = false;
  return options;
}

TEST(Shrink, LeavesASmallerCaseThatFailsInTheSameWay) {
  const PlanOptions options = without_gate();
  std::size_t shrunk_seeds = 0;
  for (std::uint64_t seed = 1; seed <= 60 && shrunk_seeds < 3; ++seed) {
    const Outcome whole = run_seed(seed, options);
    if (!whole.failure) continue;
    const auto shrunk = shrink(seed, options);
    if (!shrunk) continue;  // it fails with the gate as well
    ++shrunk_seeds;
    const ScenarioPlan plan = make_plan(seed, options);
    EXPECT_LT(shrunk->plan.topology.hosts.size(), plan.topology.hosts.size());
    EXPECT_LT(shrunk->plan.topology.switches.size(), plan.topology.switches.size());
    EXPECT_LT(messages_of(shrunk->plan), messages_of(plan));
    EXPECT_LE(shrunk->plan.topology.hosts.size(), 4u);
    EXPECT_EQ(shrunk->outcome.failure->invariant, whole.failure->invariant);

    const auto named = omitted_from(to_text(shrunk->without));
    ASSERT_TRUE(named) << named.error().text;
    const Outcome again = GroupScenario(*without(plan, *named)).run();
    EXPECT_EQ(again.trace_hash, shrunk->outcome.trace_hash) << "its name is all it takes";
    PlanOptions sound = options;
    sound.rules = {};
    EXPECT_FALSE(GroupScenario(*without(make_plan(seed, sound), *named)).run().failure)
        << "it is the rule that it lacks";
  }
  EXPECT_EQ(shrunk_seeds, 3u);
}

TEST(Shrink, HasNothingToDoWhereAllHolds) {
  PlanOptions options = without_gate();
  options.rules = {};
  EXPECT_FALSE(shrink(1, options));
}

TEST(OmittedParts, AreReadAsTheyAreWritten) {
  const std::string text = "i0-2,cut,g1,s0,s2-4,h0-12,m0.3,m0.5-6,m1.0,t9,loss,packets";
  const auto parts = omitted_from(text);
  ASSERT_TRUE(parts) << parts.error().text;
  EXPECT_EQ(parts->size(), 29u);
  const auto again = omitted_from(to_text(*parts));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *parts);
  EXPECT_TRUE(omitted_from("")->empty());
  for (const char* wrong :
       {"x3", "h", "h3-", "h5-3", "m4", "m0.", "losses", "h3,,h4", "h99999999999"}) {
    EXPECT_FALSE(omitted_from(wrong)) << wrong;
  }
}

// Two leaves of two hosts, two spines; a group of all.
class OmittedPartsOfAFabric : public testing::Test {
 protected:
  OmittedPartsOfAFabric() {
    PlanOptions options;
    options.fabrics = true;
    plan_ = make_plan(1, options);
    plan_.topology = net::leaf_spine(2, 2, 2, plan_.topology.hosts.front().up);
    plan_.nics.assign(4, plan_.nics.front());
    plan_.groups.resize(1);
    GroupPlan& group = plan_.groups.front();
    group.members = {{2, 1}, {0, 1}, {3, 1}, {1, 1}};
    group.leader = 1;
    group.messages = {{0, 3000}, {3, 40}, {1, 70}};
  }
  std::string refusal(const char* text) {
    const auto smaller = without(plan_, *omitted_from(text));
    return smaller ? "" : smaller.error().text;
  }

  ScenarioPlan plan_;
};

TEST_F(OmittedPartsOfAFabric, TakesAHostsMessagesAndIncidentsWithIt) {
  plan_.incidents = {{.kind = IncidentKind::kPause, .host = 0},
                     {.kind = IncidentKind::kPause, .lasts = 1ms, .host = 3}};
  const auto smaller = without(plan_, *omitted_from("h0,s3,packets"));
  ASSERT_TRUE(smaller) << smaller.error().text;
  EXPECT_EQ(smaller->topology.hosts.front().name, "h1");
  EXPECT_EQ(smaller->nics.size(), 3u);
  EXPECT_EQ(smaller->topology.trunks.size(), 2u);
  ASSERT_EQ(smaller->incidents.size(), 1u);
  EXPECT_EQ(smaller->incidents[0].host, 2u);
  const GroupPlan& group = smaller->groups.front();
  EXPECT_EQ(group.leader, 0u) << "the leader was on it";
  ASSERT_EQ(group.messages.size(), 2u);
  EXPECT_EQ(group.messages[0].source, 0u);
  EXPECT_EQ(group.messages[0].bytes, plan_.transport.path_mtu);
  EXPECT_EQ(group.messages[1].source, 2u);
  EXPECT_EQ(group.members[2].host, 0u);
  EXPECT_FALSE(GroupScenario(*smaller).run().failure);
}

TEST_F(OmittedPartsOfAFabric, NamesNothingTwice) {
  const auto few = essential(plan_, *omitted_from("s0,h0-1,t0-1,m0.1-2"));
  EXPECT_EQ(to_text(few), "s0");
}

TEST_F(OmittedPartsOfAFabric, IsRefusedIfNoScenarioIsLeft) {
  EXPECT_EQ(refusal("h0-2"), "no group of two members and a message is left");
  EXPECT_EQ(refusal("m0.0-2"), "no group of two members and a message is left");
  EXPECT_EQ(refusal("s2-3"), "hosts are left without a way between them");
  EXPECT_EQ(refusal("h4"), "the seed's plan has no h4");
}

TEST_F(OmittedPartsOfAFabric, LeavesAPathThatACutDoesNotTouch) {
  plan_.cut.trunks = {0};
  EXPECT_EQ(refusal("s2"), "") << "the cut goes with its switch";
  EXPECT_EQ(refusal("s3"), "hosts are left without a way between them");
}

}  // namespace
}  // namespace cepheus::sim
