// Thousands of seeds of groups with changing sources on failing fabrics, other ones every day: all
// invariants hold. CEPHEUS_FIRST_SEED names another day's first.

#include <gtest/gtest.h>

#include <cstdio>

#include "fabric-sim/checked/campaign.h"
#include "fabric-sim/checked/first_seed.h"

namespace cepheus::sim {
namespace {

Outcome expect_no_failure_from(std::uint64_t first, std::uint64_t seeds, const char* flags,
                               const PlanOptions& options) {
  Campaign campaign;
  campaign.first = first;
  campaign.seeds = seeds;
  campaign.options = options;
  std::printf("%llu seeds from %llu %s\n", static_cast<unsigned long long>(seeds),
              static_cast<unsigned long long>(campaign.first), flags);
  const CampaignResult result = run_campaign(campaign, [&](const Failure& failure) {
    ADD_FAILURE() << "seed " << failure.seed << ": " << to_string(failure.finding.invariant)
                  << " violated: " << failure.finding.text << "\n  replay: cepheus-sim --seed "
                  << failure.seed << " " << flags << " --trace";
  });
  return result.sum;
}

Outcome expect_no_failure(std::uint64_t seeds, const char* flags, const PlanOptions& options,
                          std::uint64_t skip = 0) {
  return expect_no_failure_from(first_seed() + skip, seeds, flags, options);
}

class Seeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, HoldEveryInvariant) {
  constexpr std::uint64_t kSeedsPerShard = 200;
  expect_no_failure(kSeedsPerShard, "", {}, GetParam() * kSeedsPerShard);
}

INSTANTIATE_TEST_SUITE_P(Shards, Seeds, testing::Range<std::uint64_t>(0, 8));

TEST(SeedsWithIncidents, HoldEveryInvariant) {
  PlanOptions options;
  options.incidents = true;
  const Outcome seen = expect_no_failure(1500, "--incidents", options);
  EXPECT_GT(seen.evicted, 100u);  // two groups in three evict their dead
  EXPECT_GT(seen.spoofed, 1000u);
}

TEST(SeedsOfSevenSwitches, HoldEveryInvariant) {
  PlanOptions options;
  options.switches = 7;
  options.incidents = true;
  expect_no_failure(300, "--switches 7 --incidents", options);
}

// Groups over trunks that fail end, and come back by another way.
TEST(SeedsOfTrunkCuts, HoldEveryInvariant) {
  PlanOptions options;
  options.cuts = true;
  expect_no_failure(600, "--cuts", options);
  options.incidents = true;
  expect_no_failure(300, "--cuts --incidents", options, 600);
}

// Groups of up to several hundred members; what befalls a fabric ends those that it touches.
TEST(SeedsOfFabrics, HoldEveryInvariant) {
  PlanOptions options;
  options.fabrics = true;
  expect_no_failure(600, "--fabrics", options);
  options.incidents = true;
  expect_no_failure(400, "--fabrics --incidents", options, 600);
  options.cuts = true;
  expect_no_failure(300, "--fabrics --incidents --cuts", options, 1000);
}

TEST(SeedsOfPsnSynchronisation, HoldEveryInvariant) {
  PlanOptions options;
  options.host_sync = true;
  const Outcome seen = expect_no_failure(500, "--host-sync", options);
  EXPECT_GT(seen.turns, 1000u);
  options.incidents = true;
  expect_no_failure(300, "--host-sync --incidents", options);
}

// A newcomer that is told to wait for a last source need not time out.
TEST(SeedsOfPsnSynchronisation, TimeOutLessOftenWhereNewcomersAreToldToWait) {
  PlanOptions options;
  options.host_sync = true;
  const Outcome with = expect_no_failure(200, "--host-sync", options);
  options.rules.handover_rnr = false;
  const Outcome without = expect_no_failure(200, "--host-sync --disable handover_rnr", options);
  EXPECT_LT(2 * with.time_outs, without.time_outs);
}

// What is written is exactly what was acknowledged, and nothing beside it.
TEST(SeedsOfWrites, HoldEveryInvariant) {
  PlanOptions options;
  options.writes = true;
  const Outcome seen = expect_no_failure(600, "--writes", options);
  EXPECT_GT(seen.writes, 1000u);
  EXPECT_GT(seen.writes_refused, 50u);
  options.incidents = true;
  expect_no_failure(300, "--writes --incidents", options, 600);
  options.incidents = false;
  options.host_sync = true;
  expect_no_failure(150, "--writes --host-sync", options, 900);
}

// Each goes where its own announcement says, however often both are repeated.
TEST(SeedsOfAnnouncedWrites, HoldEveryInvariant) {
  PlanOptions options;
  options.per_request = true;
  const Outcome seen = expect_no_failure(600, "--per-request", options);
  EXPECT_GT(seen.writes, 1000u);
  EXPECT_GT(seen.writes_refused, 50u);
  options.incidents = true;
  expect_no_failure(300, "--per-request --incidents", options, 600);
  options.switches = 7;
  expect_no_failure(100, "--per-request --incidents --switches 7", options, 900);
  options = {};
  options.per_request = options.host_sync = true;
  expect_no_failure(150, "--per-request --host-sync", options, 1000);
}

// Turns that no PSN can measure, by both methods of changing the source, with sources that change
// afterwards on a fabric that is still failing.
TEST(SeedsOfLongTurns, HoldEveryInvariant) {
  PlanOptions options;
  options.long_turns = true;
  EXPECT_GT(expect_no_failure(400, "--long-turns", options).jumped, std::uint64_t{1} << 32);
  options.per_request = true;
  expect_no_failure(150, "--long-turns --per-request", options, 400);
  options = {};
  options.long_turns = options.host_sync = true;
  EXPECT_GT(expect_no_failure(300, "--long-turns --host-sync", options, 600).jumped,
            std::uint64_t{1} << 30);
  options.writes = true;
  expect_no_failure(100, "--long-turns --host-sync --writes", options, 900);
  options = {};
  options.long_turns = options.fabrics = options.incidents = true;
  expect_no_failure(100, "--long-turns --fabrics --incidents", options, 1000);
  // Messages of leaders are under way whenever the simulator looks whether a turn may jump.
  expect_no_failure_from(5000032, 1, "--long-turns --fabrics --incidents", options);
  options = {};
  options.long_turns = true;
  expect_no_failure_from(300118907, 1, "--long-turns", options);
}

// MC-RDMA's multicast: trunks that fail and switches that are restarted end nothing.
TEST(SeedsOfSenderGroups, HoldEveryInvariant) {
  PlanOptions options;
  options.sender_groups = true;
  const Outcome seen = expect_no_failure(600, "--sender-groups", options);
  EXPECT_GT(seen.naks, 500u);
  options.incidents = true;
  expect_no_failure(400, "--sender-groups --incidents", options, 600);
  options.cuts = true;
  expect_no_failure(200, "--sender-groups --incidents --cuts", options, 1000);
  options = {};
  options.sender_groups = options.writes = options.incidents = true;
  EXPECT_GT(expect_no_failure(300, "--sender-groups --writes --incidents", options, 1200).writes,
            1000u);
}

// Whatever waits is marked or paused, and nothing is lost for want of room.
TEST(SeedsOfCongestion, HoldEveryInvariant) {
  PlanOptions options;
  options.congestion = true;
  const Outcome seen = expect_no_failure(1000, "--congestion", options);
  EXPECT_GT(seen.pauses, 300u);
  EXPECT_GT(seen.marked, 1000u);
  options.incidents = true;
  expect_no_failure(400, "--congestion --incidents", options, 1000);
  options.incidents = false;
  options.far = true;
  expect_no_failure(200, "--congestion --far", options, 1400);
}

// Two switches whose answers to each other's data waited for each other's pauses to end.
TEST(SeedsOfCongestion, HoldWhereSwitchesAnswerEachOther) {
  PlanOptions options;
  options.congestion = options.cuts = true;
  expect_no_failure_from(8924, 1, "--congestion --cuts", options);
}

// NICs that acknowledge, and ask again, in other ways than the emulated NIC does.
TEST(SeedsOfOtherNics, HoldEveryInvariant) {
  PlanOptions options;
  options.nics = true;
  const Outcome seen = expect_no_failure(400, "--nics", options);
  EXPECT_GT(seen.naks, 500u);
  options.incidents = true;
  expect_no_failure(200, "--nics --incidents", options, 400);
  options.fabrics = true;
  expect_no_failure(100, "--nics --incidents --fabrics", options, 600);
  options = {};
  options.nics = options.sender_groups = options.incidents = true;
  expect_no_failure(200, "--nics --sender-groups --incidents", options, 700);
  options = {};
  options.nics = options.host_sync = true;
  expect_no_failure(100, "--nics --host-sync", options, 900);
}

// The farther members' answers come long after the repeats that the nearer ones asked for.
TEST(SeedsOfFarHosts, HoldEveryInvariant) {
  PlanOptions options;
  options.far = true;
  const Outcome seen = expect_no_failure(500, "--far", options);
  EXPECT_GT(seen.naks, 500u);
}

}  // namespace
}  // namespace cepheus::sim
