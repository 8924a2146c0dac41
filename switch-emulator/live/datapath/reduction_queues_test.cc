// Results of reductions before links that are full, or stand still.
#include <gmock/gmock.h>

#include "switch-emulator/live/datapath/test_queues.h"

namespace cepheus::live {
namespace {

// They are the switch's own frames, and twice as many as other frames of its own may wait.
TEST_F(Queues, KeepAllResultsOfAReduction) {
  build(narrowing(true));
  constexpr std::uint16_t kUnits = 32;
  std::array clients{attach(0), attach(1)};
  start_reduction(clients, 0, 1, kUnits);
  take_all(clients[1]);
  for (const std::size_t host : {0, 1}) {
    for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
      contribute(clients[host], host, unit);
      poll_for(50us);
    }
  }
  poll_for(10ms);
  EXPECT_EQ(take_results(clients[1]), all(kUnits));
  EXPECT_GT(counted("h1")["queue_high_water_bytes"], 16u << 10);
  EXPECT_EQ(dropped(), 0u);
}

// Nothing says when the ring's pause will end, and the result is under way meanwhile.
TEST_F(Queues, HoldAResultForAMemberThatHasStoppedReading) {
  build(net::Topology::star(3, faster(true)));
  std::array members{attach(0), attach(1)};
  BareClient sender = attach(2);
  start_reduction(members, 0, 1, 8);
  for (std::uint32_t sent = 0; sent < LastHop::kPauseAt; ++sent) {
    sender.put(packet_between(2, 1, sent), *sender.take_slot());
    poll_for(10us);
  }
  for (const std::size_t host : {0, 1}) contribute(members[host], host, 0);
  poll_for(400ms);
  EXPECT_FALSE(take_results(members[0]).empty());
  EXPECT_EQ(take_results(members[1]), all(0)) << "its link is paused";
  poll_for(1ms);
  EXPECT_EQ(take_results(members[1]), all(1));
  EXPECT_EQ(dropped(), 0u);
}

// h1 reads nothing, and is in many groups. h0 and h2 have one of their own.
TEST_F(Queues, KeepSlotsForResultsWhereASlowMemberIsInManyGroups) {
  bytes_.resize(64);
  build(net::Topology::star(3, faster(true)));
  std::array members{attach(0), attach(1), attach(2)};
  constexpr std::size_t kGroups = 48;
  constexpr std::uint16_t kWindow = 256;
  start_reduction(members, 2, 0, kWindow, reduction(kGroups));
  for (std::size_t g = 0; g < kGroups; ++g) {
    start_reduction(members, 0, 1, kWindow, reduction(g));
    for (std::uint32_t unit = 0; unit < kWindow; ++unit) {
      for (const std::size_t host : {0, 1}) contribute(members[host], host, unit, reduction(g));
      datapath->poll(now += 1us);
      take_all(members[0]);
    }
  }
  EXPECT_GT(dropped(), 0u) << "more results than slots";
  for (const std::size_t host : {0, 2}) contribute(members[host], host, 0, reduction(kGroups));
  poll_for(1ms);
  EXPECT_EQ(take_results(members[2]), all(1));
}

// h0 sends to h2, which reads nothing, so the trunk to its switch stands still. These two are in many
// groups, and each completes half of the units. h1 and h3 have a group of their own over that trunk.
class ResultsOnATrunkThatStandsStill : public Queues {
 protected:
  static constexpr std::size_t kGroups = 48;
  static constexpr std::uint16_t kWindow = 256;

  // `counter`: of results that may not wait.
  void expect_space_for_others(std::size_t bytes, const char* counter) {
    bytes_.resize(bytes);
    build(net::leaf_spine(2, 1, 2, faster(true)));
    std::array members{attach(0), attach(1), attach(2), attach(3)};
    for (std::size_t g = 0; g < kGroups; ++g) {
      start_reduction(members, 0, 2, kWindow, reduction(g));
    }
    start_reduction(members, 1, 3, kWindow, reduction(kGroups));
    fill_until_paused(members[0], "leaf1");
    complete_units(members[0], members[2]);
    EXPECT_GT(counted("spine0")[counter], 0u) << "more results than may wait";
    for (const std::size_t host : {1, 3}) contribute(members[host], host, 0, reduction(kGroups));
    poll_for(1ms);
    EXPECT_EQ(take_results(members[1]), all(1));
    EXPECT_TRUE(take_results(members[3]).empty()) << "the trunk does not stand still";
    for (const wire::Instant until = now + 5ms; now < until;) {
      take_all(members[2]);
      poll_for(50us);
    }
    EXPECT_EQ(take_results(members[3]), all(1)) << "it has to be repeated";
  }

 private:
  void complete_units(BareClient& h0, BareClient& h2) {
    for (std::size_t g = 0; g < kGroups; ++g) {
      for (const bool is_last : {false, true}) {
        const bool is_h2 = (g % 2 == 0) == is_last;
        for (std::uint32_t unit = 0; unit < kWindow; ++unit) {
          contribute(is_h2 ? h2 : h0, is_h2 ? 2 : 0, unit, reduction(g));
          datapath->poll(now += 1us);
        }
        poll_for(200us);
        take_all(h0);
      }
    }
    poll_for(1ms);
    take_all(h0);
  }
};

TEST_F(ResultsOnATrunkThatStandsStill, LeaveSpaceForOthers) {
  expect_space_for_others(8, "drop_queue_share");  // they need no slots
}

TEST_F(ResultsOnATrunkThatStandsStill, LeaveSlotsForOthers) {
  expect_space_for_others(64, "drop_link_share");
}

}  // namespace
}  // namespace cepheus::live
