#include "switch-emulator/engine/reduction/requester.h"

#include <gtest/gtest.h>

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using wire::Duration;
using wire::Instant;
using wire::kNever;

constexpr Instant kBegin{1s};

// Units 0 to `units` - 1 have been sent.
Requester after_sending(Unit units) {
  Requester out;
  for (Unit unit = 0; unit < units; ++unit) EXPECT_FALSE(out.on_sent(kBegin));
  return out;
}

TEST(Requester, KeepsUnitsUntilTheyAreAcknowledged) {
  Requester out = after_sending(4);
  EXPECT_EQ(out.on_answer(kBegin, 3), Requester::Answer::kNews);
  EXPECT_EQ(out.acked(), 3u);
  EXPECT_EQ(out.next(), 4u);
  EXPECT_EQ(out.on_answer(kBegin, 3), Requester::Answer::kStale);
  EXPECT_EQ(out.on_answer(kBegin, -7), Requester::Answer::kStale);
  EXPECT_EQ(out.on_answer(kBegin, 5), Requester::Answer::kUnsent);
  EXPECT_EQ(out.acked(), 3u);
  EXPECT_EQ(out.on_answer(kBegin, 4), Requester::Answer::kNews);
  EXPECT_TRUE(out.is_idle());
  EXPECT_EQ(out.due(0s), kNever);
}

TEST(Requester, GoesBackToTheFirstUnitThatIsLacking) {
  Requester out = after_sending(4);
  out.on_answer(kBegin, 1);
  EXPECT_TRUE(out.on_nak(kBegin, 1ms));
  EXPECT_EQ(out.next(), 1u);
  EXPECT_TRUE(out.on_sent(kBegin)) << "a repeat";
  EXPECT_EQ(out.on_answer(kBegin, 4), Requester::Answer::kNews) << "they were under way";
  EXPECT_EQ(out.next(), 4u);
  EXPECT_FALSE(out.on_sent(kBegin)) << "a new one";
}

// Of a device that sends a NAK for each packet behind a missing one. Each repeat of a window would
// cause as many.
TEST(Requester, GoesBackOnceInARoundTripForOneUnit) {
  Requester out = after_sending(4);
  EXPECT_TRUE(out.on_nak(kBegin, 1ms));
  for (int n = 0; n < 4; ++n) out.on_sent(kBegin);
  EXPECT_FALSE(out.on_nak(kBegin + Requester::kFirstWait - 1us, 1ms));
  EXPECT_EQ(out.next(), 4u);
  out.on_answer(kBegin, 1);
  EXPECT_TRUE(out.on_nak(kBegin, 1ms)) << "another unit is missing";
  for (int n = 0; n < 3; ++n) out.on_sent(kBegin);
  EXPECT_TRUE(out.on_nak(kBegin + Requester::kFirstWait, 1ms)) << "the repeat was lost, too";
}

// Otherwise a hostile member would get a window of packets for each of its requests.
TEST(Requester, HasFewerUnitsUnderWayAfterEachRequest) {
  Requester out = after_sending(64);
  EXPECT_EQ(out.limit(64), 64u);
  std::uint64_t repeats = 0;
  for (int unit = 1; unit < 64; ++unit) {
    out.on_answer(kBegin, unit);
    EXPECT_TRUE(out.on_nak(kBegin, 1ms));
    for (; out.next() < out.limit(64); ++repeats) out.on_sent(kBegin);
  }
  EXPECT_LE(repeats, 3 * 64u);
  out.on_pause(kBegin);
  out.on_due(kBegin);
  EXPECT_EQ(out.limit(64), out.next() + 1);
}

TEST(Requester, HasFewerUnitsUnderWayAfterEachPause) {
  Requester out = after_sending(64);
  std::uint64_t repeats = 0;
  for (int n = 0; n < 64; ++n) {
    out.on_pause(kBegin);
    out.on_due(kBegin);
    for (; out.next() < out.limit(64); ++repeats) out.on_sent(kBegin);
  }
  EXPECT_LE(repeats, 2 * 64u);
}

// A network repeats packets, and some devices answer each packet. Nothing is sent during a pause.
TEST(Requester, APauseThatIsRequestedAgainIsOneEvent) {
  Requester out = after_sending(64);
  for (int n = 1; n <= 8; ++n) out.on_pause(kBegin + n * 1ms);
  EXPECT_EQ(out.due(0s), kBegin + 8ms) << "the last answer has the time";
  out.on_due(kBegin + 8ms);
  EXPECT_EQ(out.limit(64), 32u) << "halved once";
}

TEST(Requester, HasAllUnderWayAgainOnceTheRepeatsHaveCome) {
  Requester out = after_sending(16);
  EXPECT_TRUE(out.on_nak(kBegin, 1ms));
  EXPECT_EQ(out.limit(20), 8u);
  out.on_answer(kBegin, 4);
  EXPECT_EQ(out.limit(20), 16u) << "one more for each acknowledged unit";
  out.on_due(kBegin);
  EXPECT_EQ(out.limit(20), 10u);
  out.on_answer(kBegin, 16);
  EXPECT_EQ(out.limit(20), 20u);
}

TEST(Requester, IsNotPutOffByNewUnits) {
  Requester out = after_sending(1);
  const Instant due = out.due(1ms);
  for (int n = 1; n < 100; ++n) out.on_sent(kBegin + n * 100us);
  EXPECT_EQ(out.due(1ms), due);
}

TEST(Requester, WaitsAsAReceiverThatIsNotReadyWants) {
  Requester out = after_sending(2);
  out.on_pause(kBegin + 5ms);
  EXPECT_TRUE(out.is_paused());
  EXPECT_EQ(out.due(0s), kBegin + 5ms);
  out.on_due(kBegin + 5ms);
  EXPECT_EQ(out.silent_repeats(), 0) << "no time-out";
  EXPECT_EQ(out.next(), 0u);
  EXPECT_FALSE(out.is_paused());
}

TEST(Requester, RepeatsWithoutALimitAndLessAndLessOften) {
  Requester out = after_sending(1);
  Instant now = kBegin;
  wire::Duration last{};
  for (int i = 0; i < 100; ++i) {
    const wire::Duration wait = out.due(1ms) - now;
    EXPECT_GE(wait, last);
    EXPECT_LE(wait, Requester::kLongestWait);
    last = wait;
    now += wait;
    out.on_due(now);
    EXPECT_TRUE(out.on_sent(now));
  }
  EXPECT_EQ(last, Requester::kLongestWait);
  EXPECT_EQ(out.silent_repeats(), 100);
  out.on_life();
  EXPECT_EQ(out.silent_repeats(), 0);
  out.on_answer(now, 1);
  out.on_sent(now);
  EXPECT_EQ(out.due(1ms), now + Requester::kFirstWait) << "no round trip is known yet";
}

// Repeats measure nothing, and would come for ever.
TEST(Requester, WaitsLongerWhereAnswersHaveBecomeSlower) {
  Requester out;
  Instant now = kBegin;
  int repeats = 0;
  const auto exchange = [&](Duration trip) {
    out.on_sent(now);
    for (const Instant answered = now + trip; now < answered;) {
      now = std::min(answered, out.due(0s));
      if (now == answered) break;
      ++repeats;
      out.on_due(now);
      out.on_sent(now);
    }
    out.on_answer(now, static_cast<std::int64_t>(out.newest()));
    now += 1ms;
  };
  for (int n = 0; n < 50; ++n) exchange(20us);
  EXPECT_EQ(repeats, 0);
  for (int n = 0; n < 50; ++n) exchange(500us);
  EXPECT_LE(repeats, 12);
  const int before = repeats;
  for (int n = 0; n < 50; ++n) exchange(500us);
  EXPECT_EQ(repeats, before) << "the round trip is known";
}

TEST(Requester, MeasuresUnitsThatWereSentOnce) {
  Requester out = after_sending(1);
  out.on_answer(kBegin + 100us, 1);
  out.on_sent(kBegin + 1s);
  EXPECT_EQ(out.due(1us), kBegin + 1s + 400us) << "two means, four deviations of half a mean";
  out.on_due(kBegin + 2s);
  out.on_sent(kBegin + 2s);
  out.on_answer(kBegin + 3s, 2);
  out.on_sent(kBegin + 4s);
  EXPECT_EQ(out.due(1us), kBegin + 4s + 800us) << "the answer may be to either";
}

TEST(Requester, LearnsAcknowledgementsFromWhatThePathSends) {
  Requester out = after_sending(3);
  out.on_pause(kBegin + 1s);
  out.on_implied(kBegin, 2);
  EXPECT_EQ(out.acked(), 2u);
  EXPECT_TRUE(out.is_paused());
  out.on_implied(kBegin, 1);
  EXPECT_EQ(out.acked(), 2u);
  out.on_implied(kBegin, 3);
  EXPECT_EQ(out.due(0s), kNever);
  EXPECT_FALSE(out.is_paused());
}

}  // namespace
}  // namespace cepheus::fabric
