#include "controller/backoff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace cepheus::mrp {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr Instant kFirst{Duration{1'000'000'000}};

// Transmits whenever it is due, `most` times at most: milliseconds since kFirst.
std::vector<int> transmissions(Backoff backoff, unsigned most) {
  std::vector<int> when;
  while (when.size() < most && !backoff.is_used_up()) {
    const Instant now = backoff.deadline();
    EXPECT_TRUE(backoff.is_due(now));
    EXPECT_FALSE(backoff.is_due(now - 1ns));
    backoff.sent(now);
    when.push_back(static_cast<int>((now - kFirst) / 1ms));
  }
  return when;
}

TEST(Backoff, DoublesUpToTheLongestInterval) {
  EXPECT_THAT(transmissions(Backoff({20ms, 100ms}, kFirst), 6),
              ElementsAre(0, 20, 60, 140, 240, 340));
}

TEST(Backoff, KeepsOnePaceIfTheFirstIntervalIsTheLongest) {
  EXPECT_THAT(transmissions(Backoff({50ms, 50ms}, kFirst + 50ms), 3), ElementsAre(50, 100, 150));
}

TEST(Backoff, CountsFromTheTransmissionEvenIfThatCameLate) {
  Backoff backoff({20ms, 100ms}, kFirst);
  backoff.sent(kFirst + 7ms);
  EXPECT_EQ(backoff.deadline(), kFirst + 27ms);
}

TEST(Backoff, IsUsedUpAfterTheLastTransmissionAndThenDueToGiveUp) {
  Backoff backoff({20ms, 100ms, 3}, kFirst);
  EXPECT_THAT(transmissions(backoff, 100), ElementsAre(0, 20, 60));
  for (const Duration at : {0ms, 20ms, 60ms}) {
    EXPECT_FALSE(backoff.is_used_up());
    EXPECT_EQ(backoff.is_first(), at == 0ms);
    backoff.sent(kFirst + at);
  }
  EXPECT_TRUE(backoff.is_used_up());
  EXPECT_EQ(backoff.deadline(), kFirst + 140ms) << "the last one is given its time, too";
}

TEST(Backoff, IsNeverDueBeforeItBeginsNorOnceItHasStopped) {
  EXPECT_FALSE(Backoff().is_due(kFirst));
  EXPECT_EQ(Backoff().deadline(), wire::kNever);
  Backoff backoff({20ms, 100ms}, kFirst);
  backoff.sent(kFirst);
  backoff.stop();
  EXPECT_FALSE(backoff.is_due(kFirst + 1h));
}

}  // namespace
}  // namespace cepheus::mrp
