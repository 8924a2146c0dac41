#include "net/link.h"

#include <gtest/gtest.h>

#include <vector>

namespace cepheus::net {
namespace {

using namespace std::chrono_literals;
using wire::BitRate;
using wire::Duration;
using wire::Instant;

constexpr Instant kStart{Duration{1'000'000}};

TEST(Link, DeliversAtOnceWhenIdeal) {
  Link link;
  const Passage p = link.offer(kStart, 1500);
  EXPECT_EQ(p.drop, LinkDrop::kNone);
  EXPECT_EQ(p.copies, 1);
  EXPECT_EQ(p.arrival[0], kStart);
  EXPECT_FALSE(p.corrupt);
}

TEST(Link, SerialisesFramesAtItsRateThenDelaysThem) {
  LinkConfig config;
  config.rate = BitRate{1'000'000'000};
  config.delay = 100us;
  Link link(config);
  EXPECT_EQ(link.offer(kStart, 1250).arrival[0], kStart + 10us + 100us);
  EXPECT_EQ(link.offer(kStart, 1250).arrival[0], kStart + 20us + 100us);
  EXPECT_EQ(link.offer(kStart + 50us, 1250).arrival[0], kStart + 60us + 100us);
}

TEST(Link, LosesNoTimeToRoundingOverManySmallFrames) {
  LinkConfig config;
  config.rate = BitRate{100'000'000'000};
  Link link(config);
  Instant last{};
  for (int i = 0; i < 1000; ++i) last = link.offer(kStart, 62).arrival[0];
  EXPECT_EQ(last - kStart, 4960ns);  // 62'000 bytes at 100 Gb/s
}

TEST(Link, LosesNoTimeToRoundingWhereSizesAlternate) {
  LinkConfig config;
  config.rate = BitRate{7'000'000'000};
  Link link(config);
  Instant last{};
  for (int i = 0; i < 700; ++i) last = link.offer(kStart, i % 2 == 0 ? 62 : 4154).arrival[0];
  EXPECT_EQ(last - kStart, 1'686'400ns);  // 350 of each, 1'475'600 bytes, at 7 Gb/s
}

// Exact to the byte, at rates and sizes that leave remainders.
TEST(Link, HoldsExactlyItsQueueLimit) {
  wire::SplitMix random(1);
  const auto below = [&](std::uint64_t n) { return random.next() % n; };
  int dropped = 0;
  for (int round = 0; round < 1000; ++round) {
    LinkConfig config;
    config.rate = BitRate{1 + below(400'000'000'000)};
    config.queue_bytes = 1000 + below(20'000);
    Link link(config);
    for (Instant now = kStart; now < kStart + 20us; now += Duration(below(2000))) {
      const wire::Bytes queued = link.queued_bytes(now);
      const std::size_t size = below(4) == 0 && queued != 0 && queued < config.queue_bytes
                                   ? config.queue_bytes - queued + below(2)
                                   : below(5000);
      const bool is_full = queued != 0 && queued + size > config.queue_bytes;
      dropped += is_full;
      ASSERT_EQ(link.offer(now, size).drop == LinkDrop::kQueueFull, is_full)
          << queued << " of " << config.queue_bytes << " bytes wait, " << size << " come";
    }
  }
  EXPECT_GT(dropped, 500);
}

TEST(Link, DropsWhatDoesNotFitItsQueueAndTakesMoreLater) {
  LinkConfig config;
  config.rate = BitRate{8'000'000};  // 1 byte a microsecond
  config.queue_bytes = 2500;
  Link link(config);
  EXPECT_EQ(link.offer(kStart, 1000).drop, LinkDrop::kNone);
  EXPECT_EQ(link.offer(kStart, 1000).drop, LinkDrop::kNone);
  EXPECT_EQ(link.queued_bytes(kStart), 2000u);
  EXPECT_EQ(link.offer(kStart, 1000).drop, LinkDrop::kQueueFull);
  EXPECT_EQ(link.offer(kStart + 500us, 1000).drop, LinkDrop::kNone);
  EXPECT_EQ(link.counters().dropped_queue_full, 1u);
  EXPECT_EQ(link.counters().frames, 4u);
}

TEST(Link, TakesAFrameLargerThanItsQueueWhenIdle) {
  LinkConfig config;
  config.rate = BitRate{8'000'000};
  config.queue_bytes = 100;
  Link link(config);
  EXPECT_EQ(link.offer(kStart, 1000).drop, LinkDrop::kNone);
  EXPECT_EQ(link.offer(kStart, 10).drop, LinkDrop::kQueueFull);
}

TEST(Link, DropsEverythingWhileDown) {
  Link link;
  link.set_up(false);
  EXPECT_EQ(link.offer(kStart, 100).drop, LinkDrop::kDown);
  link.set_up(true);
  EXPECT_EQ(link.offer(kStart, 100).drop, LinkDrop::kNone);
  EXPECT_EQ(link.counters().dropped_down, 1u);
}

TEST(Link, LosesAboutTheConfiguredShare) {
  LinkConfig config;
  config.loss = 0.2;
  Link link(config);
  for (int i = 0; i < 10'000; ++i) link.offer(kStart, 100);
  EXPECT_NEAR(static_cast<double>(link.counters().dropped_loss), 2000, 200);
}

TEST(Link, SecondCopyOfADuplicateFollowsWithinReorderBy) {
  LinkConfig config;
  config.duplicate = 1;
  config.reorder_by = 40us;
  Link link(config);
  for (int i = 0; i < 100; ++i) {
    const Passage p = link.offer(kStart, 100);
    ASSERT_EQ(p.copies, 2);
    EXPECT_EQ(p.arrival[0], kStart);
    EXPECT_GT(p.arrival[1], kStart);
    EXPECT_LE(p.arrival[1], kStart + 40us);
  }
}

TEST(Link, DelaysReorderedFramesByAtMostReorderBy) {
  LinkConfig config;
  config.reorder = 0.5;
  config.reorder_by = 40us;
  Link link(config);
  bool overtaken = false;
  Instant previous{};
  for (int i = 0; i < 100; ++i) {
    const Passage p = link.offer(kStart + Duration{i}, 100);
    EXPECT_LE(p.arrival[0], kStart + Duration{i} + 40us);
    overtaken = overtaken || p.arrival[0] < previous;
    previous = p.arrival[0];
  }
  EXPECT_TRUE(overtaken);
}

TEST(Link, NamesABitInsideTheFrameToCorrupt) {
  LinkConfig config;
  config.corrupt = 1;
  Link link(config);
  for (std::size_t bytes = 1; bytes < 200; ++bytes) {
    const Passage p = link.offer(kStart, bytes);
    ASSERT_TRUE(p.corrupt);
    EXPECT_LT(p.corrupt_bit, bytes * 8);
  }
  EXPECT_EQ(link.counters().corrupted, 199u);
}

std::vector<std::int64_t> fates(std::uint64_t seed) {
  LinkConfig config;
  config.loss = config.duplicate = config.reorder = config.corrupt = 0.3;
  config.seed = seed;
  Link link(config);
  std::vector<std::int64_t> all;
  for (int i = 0; i < 200; ++i) {
    const Passage p = link.offer(kStart, 100);
    all.insert(all.end(), {p.copies, p.arrival[0].time_since_epoch().count(), p.corrupt_bit});
  }
  return all;
}

TEST(Link, SameSeedGivesTheSameFaults) {
  EXPECT_EQ(fates(7), fates(7));
  EXPECT_NE(fates(7), fates(8));
}

TEST(Link, LosesNothingAfterFaultsAreSetToNone) {
  LinkConfig config;
  config.loss = 1;
  Link link(config);
  EXPECT_EQ(link.offer(kStart, 100).drop, LinkDrop::kLoss);
  link.set_faults(0, 0, 0, 0);
  EXPECT_FALSE(link.config().is_faulty());
  EXPECT_EQ(link.offer(kStart, 100).drop, LinkDrop::kNone);
}

}  // namespace
}  // namespace cepheus::net
