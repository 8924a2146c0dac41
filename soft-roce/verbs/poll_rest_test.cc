#include "soft-roce/verbs/poll_rest.h"

#include <gtest/gtest.h>

namespace cepheus::verbs {
namespace {

using namespace std::chrono_literals;
using Step = PollRest::Step;

// Polls until it is time for something else; how many that took.
int polls_until(PollRest& rest, Step wanted) {
  for (int polls = 1; polls < 10'000; ++polls) {
    const Step step = rest.fruitless(false);
    if (step == wanted) return polls;
    EXPECT_EQ(step, Step::kPollAgain);
  }
  return -1;
}

TEST(PollRest, OffersTheCoreNowAndThen) {
  PollRest rest;
  EXPECT_EQ(polls_until(rest, Step::kYield), 16);
  rest.yielded(10us);
  EXPECT_EQ(polls_until(rest, Step::kYield), 16);
}

TEST(PollRest, OffersNothingWhilePacketsCome) {
  PollRest rest;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(rest.fruitless(false), Step::kPollAgain);
    rest.fruitful();
  }
}

TEST(PollRest, SleepsWhereOthersComputeAndPollsLongerBefore) {
  PollRest rest;
  polls_until(rest, Step::kYield);
  rest.yielded(3ms);
  rest.fruitful();
  EXPECT_EQ(polls_until(rest, Step::kNap), 64);
}

TEST(PollRest, AsksAgainAfterAWhileWhetherTheCoresAreWanted) {
  PollRest rest;
  polls_until(rest, Step::kYield);
  rest.yielded(3ms);
  rest.fruitful();
  for (int naps = 0; naps < 100; ++naps) polls_until(rest, Step::kNap);
  polls_until(rest, Step::kYield);
  rest.yielded(5us);  // by nobody
  rest.fruitful();
  EXPECT_EQ(polls_until(rest, Step::kYield), 16);
}

TEST(PollRest, SleepsForABatchAndAfterSomeEmptyNapsPollsAgain) {
  PollRest rest;
  for (int round = 0; round < 3; ++round) {
    for (int naps = 0; naps < 5; ++naps) EXPECT_EQ(rest.fruitless(true), Step::kNapForBatch);
    EXPECT_EQ(rest.fruitless(true), Step::kPollAgain) << "none comes";
    rest.fruitful();
  }
  EXPECT_EQ(rest.fruitless(false), Step::kPollAgain);
}

TEST(PollRest, LooksAfterTheFabricRarely) {
  PollRest rest;
  int looks = 0;
  for (int i = 0; i < 10 * 4096; ++i) {
    looks += rest.is_check_due() ? 1 : 0;
    rest.fruitless(false);
  }
  EXPECT_EQ(looks, 10);
}

}  // namespace
}  // namespace cepheus::verbs
