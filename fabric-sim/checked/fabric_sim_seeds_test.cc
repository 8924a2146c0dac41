// Thousands of seeds of groups with changing sources on failing fabrics, with other seeds every
// day: all invariants hold. CEPHEUS_FIRST_SEED names the first seed of another day.

#include <gtest/gtest.h>

#include <cstdio>

#include "fabric-sim/checked/first_seed.h"
#include "fabric-sim/checked/run_seed.h"
#include "fabric-sim/checked/seeds.h"
#include "fabric-sim/checked/test_situations.h"
#include "nic-emulator/engine/nic_profile.h"

namespace cepheus::sim {
namespace {

Outcome expect_no_failure_from(std::uint64_t first, std::uint64_t seeds, const char* flags,
                               const PlanOptions& options) {
  constexpr std::size_t kMostFailures = 10;
  std::printf("%llu seeds from %llu %s\n", static_cast<unsigned long long>(seeds),
              static_cast<unsigned long long>(first), flags);
  const auto run = [&](std::uint64_t seed) { return run_seed(seed, options); };
  const auto report = [&](const FailedSeed<Outcome>& failed) {
    ADD_FAILURE() << "seed " << failed.seed << ": " << to_string(failed.failure.invariant)
                  << " violated: " << failed.failure.text << "\n  replay: cepheus-sim --seed "
                  << failed.seed << " " << flags << " --trace";
  };
  return run_seeds(first, seeds, 1, kMostFailures, run, report).sum;
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
  const Outcome seen = expect_no_failure(1500, "--incidents", {.incidents = true});
  EXPECT_GT(seen.evicted, 100u);  // two groups in three evict dead members
  EXPECT_GT(seen.gave_up, 40u);   // their leaders died without a notice
  EXPECT_GT(seen.spoofed, 1000u);
}

TEST(SeedsOfSevenSwitches, HoldEveryInvariant) {
  expect_no_failure(300, "--switches 7 --incidents", {.switches = 7, .incidents = true});
}

// Groups over trunks that fail end, and groups of the same members come up over other trunks.
TEST(SeedsOfTrunkCuts, HoldEveryInvariant) {
  expect_no_failure(600, "--cuts", {.cuts = true});
  expect_no_failure(300, "--cuts --incidents", {.incidents = true, .cuts = true}, 600);
}

// Groups of up to several hundred members; an incident ends only the groups that it touches.
TEST(SeedsOfFabrics, HoldEveryInvariant) {
  expect_no_failure(600, "--fabrics", {.fabrics = true});
  expect_no_failure(400, "--fabrics --incidents", {.incidents = true, .fabrics = true}, 600);
  expect_no_failure(300, "--fabrics --incidents --cuts",
                    {.incidents = true, .cuts = true, .fabrics = true}, 1000);
}

TEST(SeedsOfPsnSynchronisation, HoldEveryInvariant) {
  const Outcome seen = expect_no_failure(500, "--host-sync", {.host_sync = true});
  EXPECT_GT(seen.turns, 1000u);
  expect_no_failure(300, "--host-sync --incidents", {.incidents = true, .host_sync = true});
}

// A newcomer that must wait for a last source need not time out.
TEST(SeedsOfPsnSynchronisation, TimeOutLessOftenIfNewcomersAreMadeToWait) {
  PlanOptions options{.host_sync = true};
  const Outcome with = expect_no_failure(200, "--host-sync", options);
  options.rules.handover_rnr = false;
  const Outcome without = expect_no_failure(200, "--host-sync --disable handover_rnr", options);
  EXPECT_LT(2 * with.time_outs, without.time_outs);
}

// Members' memory has exactly the acknowledged WRITEs, and nothing else.
TEST(SeedsOfWrites, HoldEveryInvariant) {
  const Outcome seen = expect_no_failure(600, "--writes", {.writes = true});
  EXPECT_GT(seen.writes, 1000u);
  EXPECT_GT(seen.writes_refused, 50u);
  expect_no_failure(300, "--writes --incidents", {.incidents = true, .writes = true}, 600);
  expect_no_failure(150, "--writes --host-sync", {.host_sync = true, .writes = true}, 900);
}

// Each WRITE goes to the place in its own announcement, however often both are repeated.
TEST(SeedsOfAnnouncedWrites, HoldEveryInvariant) {
  const Outcome seen = expect_no_failure(600, "--per-request", {.per_request = true});
  EXPECT_GT(seen.writes, 1000u);
  EXPECT_GT(seen.writes_refused, 50u);
  PlanOptions options{.incidents = true, .per_request = true};
  expect_no_failure(300, "--per-request --incidents", options, 600);
  options.switches = 7;
  expect_no_failure(100, "--per-request --incidents --switches 7", options, 900);
  expect_no_failure(150, "--per-request --host-sync", {.host_sync = true, .per_request = true},
                    1000);
}

// Turns longer than the range of PSNs, by both methods of changing the source, with later sources
// on a fabric that still fails.
TEST(SeedsOfLongTurns, HoldEveryInvariant) {
  const PlanOptions plain{.long_turns = true};
  const PlanOptions plain_nics{.long_turns = true, .nic = "ours"};
  EXPECT_GT(expect_no_failure(400, "--long-turns", plain).jumped, std::uint64_t{1} << 32);
  expect_no_failure_from(300118907, 1, "--long-turns --nic ours", plain_nics);
  expect_no_failure(150, "--long-turns --per-request", {.per_request = true, .long_turns = true},
                    400);
  PlanOptions options{.host_sync = true, .long_turns = true};
  EXPECT_GT(expect_no_failure(300, "--long-turns --host-sync", options, 600).jumped,
            std::uint64_t{1} << 30);
  options.writes = true;
  expect_no_failure(100, "--long-turns --host-sync --writes", options, 900);
  options = {.incidents = true, .fabrics = true, .long_turns = true};
  expect_no_failure(100, "--long-turns --fabrics --incidents", options, 1000);
  // Messages of leaders are on the way whenever the simulator checks whether a turn may jump.
  options.nic = "ours";
  expect_no_failure_from(5000032, 1, "--long-turns --fabrics --incidents --nic ours", options);
}

constexpr std::uint64_t kUnequalWays[] = {20787000427, 20787000570, 20787000677, 20787000697,
                                          20787000811, 20787000942, 20787000970, 20787001168,
                                          20787001185, 20787001640};

// MC-RDMA's multicast: failing trunks and restarted switches end no group.
TEST(SeedsOfSenderGroups, HoldEveryInvariant) {
  PlanOptions options{.sender_groups = true};
  const Outcome seen = expect_no_failure(600, "--sender-groups", options);
  EXPECT_GT(seen.naks, 500u);
  options.incidents = true;
  expect_no_failure(400, "--sender-groups --incidents", options, 600);
  options.cuts = true;
  expect_no_failure(200, "--sender-groups --incidents --cuts", options, 1000);
  // Of equal ways one had a smaller MTU. Its switches dropped packets, or the sender gave a receiver
  // behind them up.
  for (const std::uint64_t seed : kUnequalWays) {
    expect_no_failure_from(seed, 1, "--sender-groups --incidents --cuts", options);
  }
  // A receiver's program stands still, and its sender repeats 20 packets every 50 us.
  expect_no_failure_from(30000003419, 1, "--sender-groups --incidents --cuts", options);
  // Receivers must believe the switch that reports their sender as gone.
  options.nic = "ours";
  expect_no_failure_from(20272755, 1, "--sender-groups --incidents --cuts --nic ours", options);
  options = {.incidents = true, .writes = true, .sender_groups = true};
  EXPECT_GT(expect_no_failure(300, "--sender-groups --writes --incidents", options, 1200).writes,
            300u);
  options = {.fabrics = true, .sender_groups = true};
  expect_no_failure(200, "--sender-groups --fabrics", options, 1500);
}

// Every waiting frame is marked or paused, and no buffer overflows.
TEST(SeedsOfCongestion, HoldEveryInvariant) {
  const Outcome seen = expect_no_failure(1000, "--congestion", {.congestion = true});
  EXPECT_GT(seen.pauses, 300u);
  EXPECT_GT(seen.marked, 1000u);
  expect_no_failure(400, "--congestion --incidents", {.incidents = true, .congestion = true}, 1000);
  expect_no_failure(200, "--congestion --far", {.far = true, .congestion = true}, 1400);
}

// Two switches that answered each other's data waited for the ends of each other's pauses.
TEST(SeedsOfCongestion, HoldWhereSwitchesAnswerEachOther) {
  expect_no_failure_from(8924, 1, "--congestion --cuts --nic ours",
                         {.cuts = true, .congestion = true, .nic = "ours"});
}

// Barriers and gathers: each member gets each result once, and no result without its contribution.
TEST(SeedsOfReductions, HoldEveryInvariant) {
  PlanOptions options{.reductions = true};
  EXPECT_GT(expect_no_failure(300, "--reductions", options).reduced, 3000u);
  options.incidents = true;
  expect_no_failure(200, "--reductions --incidents", options, 300);
  options.fabrics = true;
  expect_no_failure(100, "--reductions --fabrics --incidents", options, 500);
  options = {.incidents = true, .cuts = true, .reductions = true};
  expect_no_failure(100, "--reductions --cuts --incidents", options, 600);
  // A box that loses order caused a window of repeats for each NAK.
  expect_no_failure_from(80011361, 1, "--reductions --cuts --incidents", options);
  // A leader waits for 5 s, and twelve switches send HELLOs.
  expect_no_failure_from(91000383, 1, "--reductions --cuts --incidents", options);
  // The first REJECT, with the name of the hostile member, is lost.
  options = {.incidents = true, .reductions = true};
  expect_no_failure_from(90110030, 1, "--reductions --incidents", options);
  // The leader's own host is hostile, and all others complain of it for 10 s.
  expect_no_failure_from(93040972, 1, "--reductions --incidents", options);
  // A hostile leader's first UNREGISTER names itself alone, or only some members.
  expect_no_failure_from(93006180, 1, "--reductions --incidents", options);
  expect_no_failure_from(93063188, 1, "--reductions --incidents", options);
}

TEST(SeedsOfReductions, HoldOnLosslessLinks) {
  PlanOptions options{.congestion = true, .reductions = true};
  const Outcome seen = expect_no_failure(200, "--reductions --congestion", options);
  EXPECT_GT(seen.marked, 100u);
  EXPECT_EQ(seen.pauses, 0u) << "contributions end at their switch, and results have space";
}

// Each make alone, also those that seeds seldom draw. Seeds of all other tests draw makes as well.
TEST(SeedsOfOtherNics, HoldEveryInvariant) {
  for (const rnic::NicProfile& profile : rnic::nic_profiles()) {
    if (!profile.serves_groups()) continue;
    const std::string flags = "--nic " + std::string(profile.name);
    PlanOptions options{.nic = std::string(profile.name)};
    const Outcome seen = expect_no_failure(60, flags.c_str(), options);
    EXPECT_GT(seen.naks, 10u) << profile.name;  // 34 on the worst of 60 days
    options.incidents = true;
    expect_no_failure(30, (flags + " --incidents").c_str(), options, 100);
  }
}

// Answers of distant members come long after the retransmissions for nearer ones.
TEST(SeedsOfFarHosts, HoldEveryInvariant) {
  const Outcome seen = expect_no_failure(500, "--far", {.far = true});
  EXPECT_GT(seen.naks, 500u);
}

testing::Environment* const must_meet = testing::AddGlobalTestEnvironment(new SituationsAreMet(
    {"controller/", "libmcast/engine/", "nic-emulator/engine/", "switch-emulator/engine/"}));

}  // namespace
}  // namespace cepheus::sim
