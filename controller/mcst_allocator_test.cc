#include "controller/mcst_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "wire/mrp.h"

namespace cepheus::mrp {
namespace {

using wire::Duration;
using wire::Instant;
using wire::Ipv4;
using wire::McstId;

using namespace std::chrono_literals;
using wire::Ipv4Prefix;

constexpr Instant kNow{Duration{1}};
constexpr Ipv4Prefix kSmall{Ipv4(198, 18, 0, 0), 29};  // six usable addresses

TEST(McstAllocator, DrawsEveryUsableAddressOnceThenReportsAnExhaustedPool) {
  McstAllocator pool(kSmall, 1, 5s);
  std::set<McstId> drawn;
  for (int i = 0; i < 6; ++i) {
    const auto lease = pool.allocate(kNow);
    ASSERT_TRUE(lease);
    EXPECT_TRUE(kSmall.contains(lease->id));
    EXPECT_NE(lease->id, Ipv4(198, 18, 0, 0));
    EXPECT_NE(lease->id, Ipv4(198, 18, 0, 7));
    drawn.insert(lease->id);
  }
  EXPECT_EQ(drawn.size(), 6u);
  const auto none = pool.allocate(kNow);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, wire::ErrorCode::kUnavailable);
  EXPECT_THAT(none.error().text, ::testing::HasSubstr("all 6 group addresses of 198.18.0.0/29"));
}

TEST(McstAllocator, LetsAFreedAddressRestThenGivesItANewEpoch) {
  McstAllocator pool({Ipv4(198, 18, 0, 9), 32}, 1, 5s);
  const auto first = pool.allocate(kNow);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->id, Ipv4(198, 18, 0, 9));
  pool.free(kNow + 1s, first->id);
  EXPECT_FALSE(pool.allocate(kNow + 6s - 1ns));
  const auto again = pool.allocate(kNow + 6s);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, first->id);
  EXPECT_TRUE(wire::newer_epoch(again->epoch, first->epoch));
}

// Such a block has neither a network nor a broadcast address (RFC 3021).
TEST(McstAllocator, DrawsBothAddressesOfABlockOfTwo) {
  McstAllocator pool({Ipv4(198, 18, 0, 8), 31}, 1, 5s);
  std::set<McstId> drawn;
  for (int i = 0; i < 2; ++i) drawn.insert(pool.allocate(kNow)->id);
  EXPECT_EQ(drawn, (std::set<McstId>{Ipv4(198, 18, 0, 8), Ipv4(198, 18, 0, 9)}));
  EXPECT_FALSE(pool.allocate(kNow));
}

TEST(McstAllocator, LeadersThatKnowNothingOfEachOtherSeldomMeet) {
  unsigned met = 0;
  std::set<McstId> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    McstAllocator pool(wire::kDefaultMcstPool, seed, 5s);
    met += !seen.insert(pool.allocate(kNow)->id).second;
  }
  EXPECT_LE(met, 2u);  // 200 of 131,070: 0.15 meetings expected
}

TEST(McstAllocator, IsTheSameForTheSameSeed) {
  McstAllocator a(wire::kDefaultMcstPool, 42, 5s), b(wire::kDefaultMcstPool, 42, 5s);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.allocate(kNow)->id, b.allocate(kNow)->id);
}

}  // namespace
}  // namespace cepheus::mrp
