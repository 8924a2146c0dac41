// Every rival against its closed-form bound: links are the only limit, and messages are much longer
// than a round trip.
#include "fabric-sim/experiments/rivals.h"

#include <gtest/gtest.h>

#include <bit>

#include "fabric-sim/experiments/circulant_graph.h"
#include "fabric-sim/experiments/unicast_run.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr double kHeaders = (4096.0 + 58) / 4096;  // Ethernet, IPv4, UDP, BTH, ICRC

// The ratio of a schedule's time among hosts of one switch to one link's time for `bound_bytes`.
double over_bound(const Schedule& schedule, std::uint64_t bound_bytes) {
  Testbed testbed(net::Topology::star(schedule.ranks(), paper_link(100, 100ns)),
                  {.memory = 64 * kMiB});
  const double us = microseconds(time_of(testbed, schedule, first_hosts(schedule.ranks())));
  return us / (static_cast<double>(bound_bytes) * kHeaders * 8 / 100e3);
}

// A correct schedule gives each rank each slice once, and no rank sends a slice before it has it.
void expect_sound(const Schedule& s, bool may_repeat) {
  std::vector<std::vector<unsigned>> got(s.ranks(), std::vector<unsigned>(s.slices.size(), 0));
  for (Rank from = 0; from < s.ranks(); ++from) {
    for (const Send& send : s.sends[from]) {
      ASSERT_LT(send.to, s.ranks());
      ASSERT_NE(send.to, from);
      ++got[send.to][send.slice];
    }
  }
  for (Rank r = 1; r < s.ranks(); ++r) {
    for (const unsigned times : got[r]) {
      EXPECT_GE(times, 1u) << "rank " << r;
      EXPECT_TRUE(may_repeat || times == 1) << "rank " << r;
    }
  }
}

TEST(Rivals, FanOutTakesACopyForEachReceiver) {
  for (const std::size_t n : {2, 4, 9}) {
    const Schedule s = fan_out(n, 8 * kMiB);
    expect_sound(s, false);
    EXPECT_NEAR(over_bound(s, (n - 1) * 8 * kMiB), 1, 0.03) << n;
  }
}

TEST(Rivals, AChainTakesItsSlicesAndOneMoreForEachRank) {
  for (const std::size_t n : {2, 4, 8, 13}) {
    for (const std::size_t slices : {1, 4, 16}) {
      const Schedule s = chain(n, 16 * kMiB, slices);
      expect_sound(s, false);
      EXPECT_NEAR(over_bound(s, (slices + n - 2) * 16 * kMiB / slices), 1, 0.03)
          << n << ' ' << slices;
    }
  }
}

TEST(Rivals, ABinomialTreeTakesARoundForEachDoubling) {
  for (const Tree tree : {Tree::kFarFirst, Tree::kNearFirst}) {
    for (const std::size_t n : {2, 3, 4, 8, 13, 16}) {
      const Schedule s = binomial_tree(n, 8 * kMiB, tree);
      expect_sound(s, false);
      EXPECT_NEAR(over_bound(s, std::bit_width(n - 1) * 8 * kMiB), 1, 0.03) << n;
    }
  }
}

TEST(Rivals, SpreadAndRollTakesTwiceTheDataWhateverTheRanks) {
  for (const std::size_t n : {2, 4, 8, 16}) {
    const Schedule s = spread_and_roll(n, 16 * kMiB);
    expect_sound(s, true);
    EXPECT_NEAR(over_bound(s, 2 * (n - 1) * 16 * kMiB / n), 1, 0.03) << n;
  }
}

TEST(Rivals, ABinomialPipelineTakesItsBlocksAndOneMoreForEachDoubling) {
  for (const std::size_t n : {2, 4, 8, 16}) {
    const Schedule s = binomial_pipeline(n, 32 * kMiB, 32);
    expect_sound(s, false);
    EXPECT_NEAR(over_bound(s, (32 + std::bit_width(n - 1) - 1) * kMiB), 1, 0.03) << n;
  }
}

// Every rank receives each block once, and each sender has its block a round before. `blocks` in
// n + ceil(log2 p) - 1 rounds, of which each brings a rank one block at most.
void expect_optimal(int ranks, int blocks) {
  const circulant_graph graph = circulant_graph_of(ranks);
  ASSERT_EQ(circulant_total_rounds(&graph, blocks),
            blocks + std::bit_width(static_cast<unsigned>(ranks - 1)) - 1);
  std::vector<circulant_blocks> of(static_cast<std::size_t>(ranks));
  for (int r = 1; r < ranks; ++r) of[static_cast<std::size_t>(r)] = circulant_blocks_of(&graph, r);
  constexpr int kNever = 1 << 30;
  std::vector<int> since(static_cast<std::size_t>(ranks * blocks), kNever);
  const auto round_of = [&](int rank, int block) -> int& {
    return since[static_cast<std::size_t>(rank * blocks + block)];
  };
  for (int block = 0; block < blocks; ++block) round_of(0, block) = -1;
  int received = 0;
  for (int round = 0; round < circulant_total_rounds(&graph, blocks); ++round) {
    const int skip = graph.skips[circulant_phase_round(&graph, blocks, round)];
    for (int to = 1; to < ranks; ++to) {
      const int block = circulant_block(&graph, &of[static_cast<std::size_t>(to)], blocks, round);
      if (block < 0) continue;
      ASSERT_LT(block, blocks);
      ASSERT_LT(round_of((to + ranks - skip) % ranks, block), round) << to << " in " << round;
      ASSERT_EQ(round_of(to, block), kNever) << to << " in " << round;
      round_of(to, block) = round;
      ++received;
    }
  }
  ASSERT_EQ(received, (ranks - 1) * blocks);
}

TEST(Rivals, ACirculantGraphGivesEachRankEachBlockOnceInTheFewestRounds) {
  for (int ranks = 2; ranks <= 600; ++ranks) {
    const int phase = circulant_graph_of(ranks).rounds;
    for (int blocks = 1; blocks <= 2 * phase + 1; ++blocks) {
      ASSERT_NO_FATAL_FAILURE(expect_optimal(ranks, blocks)) << ranks << ' ' << blocks;
    }
  }
  for (const int ranks : {1023, 1024, 1025, 4095, 4097, 10000, 16384}) {
    ASSERT_NO_FATAL_FAILURE(expect_optimal(ranks, 20)) << ranks;
  }
}

TEST(Rivals, ACirculantGraphTakesItsBlocksAndOneMoreForEachDoubling) {
  for (const std::size_t n : {2, 3, 4, 5, 8, 13, 16}) {
    const Schedule s = circulant(n, 32 * kMiB, 32);
    expect_sound(s, false);
    EXPECT_NEAR(over_bound(s, (32 + std::bit_width(n - 1) - 1) * kMiB), 1, 0.03) << n;
  }
}

TEST(Rivals, ACirculantGraphHasAsManyBlocksAsMakeItsRoundsShortest) {
  const wire::BitRate rate = paper_link(100).rate;
  const auto whole = microseconds(rate.time_for(16 * kMiB));
  for (const std::size_t ranks : {3, 8, 64, 500}) {
    const auto more = static_cast<double>(std::bit_width(ranks - 1) - 1);
    const auto time = [&](std::size_t n) {
      const auto blocks = static_cast<double>(n);
      return (blocks + more) * (whole / blocks + 10);
    };
    const std::size_t best = best_blocks(ranks, 16 * kMiB, rate, 10us);
    for (std::size_t n = 1; n < 200; ++n) EXPECT_LE(time(best), 1.001 * time(n)) << ranks << n;
  }
  EXPECT_EQ(best_blocks(2, 16 * kMiB, rate, 10us), 1u) << "one receiver";
  EXPECT_EQ(best_blocks(64, 3 * 4096, rate, 10ns), 3u) << "a packet each";
  EXPECT_EQ(best_blocks(64, 64, rate, 10us), 1u);
}

// The hosts' time comes on top, once for each relaying host.
TEST(Rivals, HostsCostsAddUpAlongAChain) {
  const std::size_t n = 4;
  Testbed testbed(net::Topology::star(n, paper_link(100, 0ns)), {});
  const HostCost cost{1us, 10us, 5us};
  const Schedule s = chain(n, 64, 1);
  const double bare = microseconds(time_of(testbed, s, first_hosts(n)));
  const double full = microseconds(time_of(testbed, s, first_hosts(n), cost));
  EXPECT_NEAR(full - bare, 3 * 10 + 2 * 5, 0.01);
}

}  // namespace
}  // namespace cepheus::sim
