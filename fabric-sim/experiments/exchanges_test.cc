// In every algorithm each rank gets the contributions of all others. The simulated times are those
// of closed forms that can be computed by hand.
#include "fabric-sim/experiments/exchanges.h"

#include <gtest/gtest.h>

#include <bit>
#include <deque>
#include <map>

#include "fabric-sim/experiments/closed_forms.h"
#include "fabric-sim/experiments/exchange_run.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

// By rank r and rank i: whether r has the contribution of i in the end. Empty: a rank waits for
// ever.
std::vector<std::vector<bool>> knowledge(const Exchanges& exchanges) {
  const std::size_t n = exchanges.size();
  std::vector<std::vector<bool>> knows(n, std::vector<bool>(n, false));
  std::map<std::pair<Rank, Rank>, std::deque<std::vector<bool>>> under_way;
  std::vector<std::size_t> next(n, 0), sent(n, 0);  // `sent`: exchanges with a message already sent
  for (Rank r = 0; r < n; ++r) knows[r][r] = true;
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (Rank r = 0; r < n; ++r) {
      while (next[r] < exchanges[r].size()) {
        const Exchange& one = exchanges[r][next[r]];
        if (one.to && sent[r] == next[r]) {
          under_way[{r, *one.to}].push_back(knows[r]);
          has_moved = true;
        }
        sent[r] = next[r] + 1;
        if (one.from) {
          auto& messages = under_way[{*one.from, r}];
          if (messages.empty()) break;
          for (Rank i = 0; i < n; ++i) knows[r][i] = knows[r][i] || messages.front()[i];
          messages.pop_front();
        }
        ++next[r];
        has_moved = true;
      }
    }
  }
  for (Rank r = 0; r < n; ++r) {
    if (next[r] != exchanges[r].size()) return {};
  }
  for (const auto& [pair, messages] : under_way) EXPECT_TRUE(messages.empty()) << pair.first;
  return knows;
}

void expect_whole(const Exchanges& exchanges, const char* what) {
  const auto all = std::vector(exchanges.size(), std::vector(exchanges.size(), true));
  EXPECT_EQ(knowledge(exchanges), all) << what << ", " << exchanges.size() << " ranks";
}

TEST(Exchanges, BringEachRankTheContributionsOfAll) {
  for (const std::size_t n : {2, 3, 4, 5, 7, 8, 13, 16, 33, 64}) {
    expect_whole(ring(n, 512), "ring");
    expect_whole(circulant_allreduce(n, 512), "circulant graph");
    expect_whole(direct(n, 512), "direct");
    expect_whole(circulant_barrier(n), "circulant barrier");
    expect_whole(ring_barrier(n), "ring barrier");
    expect_whole(tree_barrier(n), "tree barrier");
    if (!std::has_single_bit(n)) continue;
    expect_whole(recursive_doubling(n, 512), "recursive doubling");
    expect_whole(rabenseifner(n, 512), "Rabenseifner");
  }
}

std::uint64_t bytes_sent(const std::vector<Exchange>& of_rank) {
  std::uint64_t bytes = 0;
  for (const Exchange& one : of_rank) bytes += one.bytes;
  return bytes;
}

TEST(Exchanges, OfPartsSendTwiceTheVectorButForTheOwnPart) {
  constexpr std::size_t kBytes = 8 * 64;
  for (const std::size_t n : {2, 4, 8, 16, 64}) {
    for (Rank r = 0; r < n; ++r) {
      EXPECT_EQ(bytes_sent(rabenseifner(n, kBytes)[r]), 2 * (n - 1) * kBytes / n) << n;
      EXPECT_EQ(bytes_sent(ring(n, kBytes)[r]), 2 * (n - 1) * kBytes / n) << n;
      EXPECT_EQ(bytes_sent(circulant_allreduce(n, kBytes)[r]), 2 * (n - 1) * kBytes / n) << n;
    }
  }
}

// One switch: every message takes two links of 1 us, and its bytes twice.
TEST(Exchanges, TakeTheTimeOfTheirRounds) {
  const auto time = [](const Exchanges& exchanges) {
    const net::Topology star = net::Topology::star(exchanges.size(), paper_link());
    Testbed testbed(star, {.has_live_nics = true});
    const double us = microseconds(time_of(testbed, exchanges, first_hosts(exchanges.size())));
    EXPECT_NEAR(us, us_of(exchanges, Ways(star)), 0.1 + 0.01 * us);
    return us;
  };
  const auto round = [](std::size_t bytes) {
    return 2 * (1 + static_cast<double>(bytes + 58) * 8 / 100e3);
  };
  for (const std::size_t n : {4, 8, 16}) {
    const auto doublings = static_cast<double>(std::bit_width(n - 1)),
               ranks = static_cast<double>(n);
    EXPECT_NEAR(time(recursive_doubling(n, 4096)), doublings * round(4096), 0.05 * doublings);
    EXPECT_NEAR(time(circulant_allreduce(n, 8 * n)), 2 * doublings * round(8), 0.05 * doublings);
    EXPECT_NEAR(time(rabenseifner(n, 8 * n)), 2 * doublings * round(8), 0.05 * doublings);
    EXPECT_NEAR(time(ring(n, 8 * n)), 2 * (ranks - 1) * round(8), 0.05 * ranks);
    EXPECT_NEAR(time(circulant_barrier(n)), doublings * round(0), 0.05 * doublings);
    EXPECT_NEAR(time(tree_barrier(n)), 2 * doublings * round(0), 0.05 * doublings);
    EXPECT_NEAR(time(direct(n, 8)), round(8) + (ranks - 2) * 66 * 8 / 100e3, 0.02 * ranks);
  }
}

TEST(Exchanges, TakePacketsOverLinks) {
  const Ways star(net::Topology::star(4, paper_link()));
  EXPECT_EQ(hops_of(ring(4, 32), star), 6u * 4 * 2) << "rounds, ranks, links";
  EXPECT_EQ(hops_of(recursive_doubling(4, 4097), star), 2u * 4 * 2 * 2) << "two packets each";
  EXPECT_EQ(hops_of(ring_barrier(4), star), 3u * 4 * 2);
}

TEST(Exchanges, WaitForTheirProgramsProcessor) {
  Testbed testbed(net::Topology::star(8, paper_link()), {.has_live_nics = true});
  const double us = microseconds(time_of(testbed, direct(8, 8), first_hosts(8), 1us));
  EXPECT_NEAR(us, 6 + 2.01, 0.02) << "the seventh message begins after six others";
}

TEST(Ways, CountTheLinksOfAFatTree) {
  const Ways ways(net::fat_tree(4, paper_link()));
  EXPECT_EQ(ways.links(0, 1), 2u) << "one edge switch";
  EXPECT_EQ(ways.links(0, 2), 4u) << "one pod";
  EXPECT_EQ(ways.links(0, 15), 6u);
  EXPECT_EQ(ways.most_links(), 6u);
  EXPECT_EQ(ways.links_to_middle(), 3u);
}

}  // namespace
}  // namespace cepheus::sim
