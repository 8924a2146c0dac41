#include "switch-emulator/live/datapath/host_turn.h"

#include <gtest/gtest.h>

#include <array>

namespace cepheus::live {
namespace {

using wire::Instant;

constexpr Instant kNow{std::chrono::hours(1)};

// Not RoCE, so no receiver answers it.
wire::Frame datagram(std::size_t bytes) {
  static constexpr std::array<std::uint8_t, 4096> kPayload{};
  wire::Frame frame;
  frame.header_len = 42;
  frame.set_external_payload(std::span(kPayload).first(bytes - 42), wire::kNoBuffer);
  return frame;
}

// Frames of that size in one look.
int take_all(HostTurn& turn, std::size_t bytes) {
  int taken = 0;
  for (turn.begin(); turn.has_credit(); ++taken) turn.take(datagram(bytes));
  turn.end(kNow);
  return taken;
}

TEST(HostTurn, EndsAfterAQuantumOfBytes) {
  HostTurn turn;
  static_assert(HostTurn::kQuantum % 3650 < 3650 / 2, "the last frame goes far beyond it");
  EXPECT_EQ(take_all(turn, 3650), HostTurn::kQuantum / 3650 + 1);
  EXPECT_EQ(take_all(turn, 3650), HostTurn::kQuantum / 3650) << "minus the excess of the last turn";
}

TEST(HostTurn, ChargesSmallFramesForTheTimeThatTheyTake) {
  HostTurn turn;
  EXPECT_EQ(take_all(turn, 64), HostTurn::kQuantum / HostTurn::kLeastCost);
}

TEST(HostTurn, SavesNoCreditWhileTheHostIsQuiet) {
  HostTurn turn;
  for (int look = 0; look < 10; ++look) {
    turn.begin();
    turn.end(kNow);
  }
  EXPECT_EQ(take_all(turn, 64), HostTurn::kQuantum / HostTurn::kLeastCost);
}

TEST(HostTurn, LeavesALongEmptyRingToItsDoorbell) {
  HostTurn turn;
  const auto looks_until_rest = [&] {
    std::uint32_t looks = 1;
    while (!turn.may_rest(kNow)) ++looks;
    return looks;
  };
  EXPECT_EQ(looks_until_rest(), HostTurn::kLooksUntilRest);
  for (int look = 0; look < 100; ++look) turn.may_rest(kNow);
  take_all(turn, 64);
  EXPECT_EQ(looks_until_rest(), HostTurn::kLooksUntilRest) << "since it last sent";
}

TEST(HostTurn, DoesNotRestWhileItsLinkIsBusy) {
  HostTurn turn;
  turn.wait_for_link(kNow + std::chrono::microseconds(1));
  EXPECT_EQ(turn.resume(), kNow + std::chrono::microseconds(1));
  for (std::uint32_t look = 0; look < 2 * HostTurn::kLooksUntilRest; ++look) {
    ASSERT_FALSE(turn.may_rest(kNow));
  }
  turn.wait_for_link(kNow);  // the link was resumed early
  EXPECT_EQ(turn.resume(), kNow);
}

TEST(HostTurn, IgnoresADoorbellThatRingsWithoutFrames) {
  HostTurn turn;
  for (std::uint32_t ring = 0; ring < HostTurn::kMostIdleRings; ++ring) {
    ASSERT_TRUE(turn.on_ring(kNow));
  }
  EXPECT_FALSE(turn.on_ring(kNow));
  EXPECT_EQ(turn.resume(), kNow + HostTurn::kBetweenLooks) << "the ring is looked at now and then";
  const Instant later = kNow + HostTurn::kBetweenLooks;
  turn.begin();
  turn.end(later);
  EXPECT_EQ(turn.resume(), later + HostTurn::kBetweenLooks);
  turn.on_detached();
  EXPECT_TRUE(turn.on_ring(later)) << "another client's";
}

TEST(HostTurn, ListensToADoorbellThatRingsForEachFrame) {
  HostTurn turn;
  for (std::uint32_t ring = 0; ring < 2 * HostTurn::kMostIdleRings; ++ring) {
    ASSERT_TRUE(turn.on_ring(kNow));
    take_all(turn, 64);
  }
}

TEST(HostTurn, WaitsAfterTooManyUnansweredFrames) {
  HostTurn turn;
  int taken = 0;
  while (taken < UnansweredBudget::kBurst) taken += take_all(turn, 64);
  EXPECT_FALSE(turn.update_account(kNow, 0, false)) << "no other host sends";
  EXPECT_FALSE(turn.is_held(kNow));
  for (taken = 0; taken < 2 * UnansweredBudget::kBurst;) taken += take_all(turn, 64);
  EXPECT_TRUE(turn.update_account(kNow, 0, true));
  EXPECT_TRUE(turn.is_held(kNow));
  EXPECT_GT(turn.resume(), kNow);
  turn.wait_for_link(kNow);
  EXPECT_GT(turn.resume(), kNow) << "a free link ends no other wait";
}

}  // namespace
}  // namespace cepheus::live
