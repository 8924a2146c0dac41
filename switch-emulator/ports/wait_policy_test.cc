#include "switch-emulator/ports/wait_policy.h"

#include <gtest/gtest.h>

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using Step = WaitPolicy::Step;

constexpr wire::Instant kStart{1h};

// Looks at `now` until the policy returns something else; returns the number of looks.
int looks_until(WaitPolicy& policy, wire::Instant now, Step wanted) {
  for (int looks = 1; looks < 1000; ++looks) {
    const Step step = policy.found_nothing(now, false);
    if (step == wanted) return looks;
    EXPECT_EQ(step, Step::kLook);
  }
  return -1;
}

TEST(WaitPolicy, YieldsTheCoreNowAndThen) {
  WaitPolicy policy(wire::Duration::max());
  policy.found(kStart);
  EXPECT_EQ(looks_until(policy, kStart, Step::kYield), 16);
  policy.yielded(kStart, kStart + 400us);
  EXPECT_EQ(looks_until(policy, kStart + 401us, Step::kYield), 16) << "it went to one that polls";
  EXPECT_EQ(looks_until(policy, kStart + 1h, Step::kYield), 16);
}

TEST(WaitPolicy, NeverYieldsWhilePacketsCome) {
  WaitPolicy policy(wire::Duration::max());
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(policy.found_nothing(kStart, false), Step::kLook);
    policy.found(kStart);
  }
}

TEST(WaitPolicy, SleepsWhenLookingHasCostAsMuchAsSleeping) {
  WaitPolicy policy(20us);
  policy.found(kStart);
  EXPECT_EQ(looks_until(policy, kStart + 19us, Step::kYield), 16);
  EXPECT_EQ(looks_until(policy, kStart + 19us, Step::kYield), 16);
  EXPECT_EQ(looks_until(policy, kStart + 20us, Step::kSleep), 16);
  policy.found(kStart + 30us);
  EXPECT_EQ(looks_until(policy, kStart + 31us, Step::kYield), 16);
}

TEST(WaitPolicy, YieldsTheCoreBeforeItSleepsHoweverCheapThatIs) {
  WaitPolicy policy(1us);
  policy.found(kStart);
  EXPECT_EQ(looks_until(policy, kStart + 10us, Step::kYield), 16);
  EXPECT_EQ(looks_until(policy, kStart + 10us, Step::kSleep), 16);
}

TEST(WaitPolicy, YieldsTheCoreAfterEachLongLook) {
  WaitPolicy policy(20us, 1);
  policy.found(kStart);
  EXPECT_EQ(policy.found_nothing(kStart + 30us, false), Step::kYield);
  EXPECT_EQ(policy.found_nothing(kStart + 30us, false), Step::kSleep);
}

TEST(WaitPolicy, SleepsForAWhileAfterAYieldedCoreWasTakenForLong) {
  WaitPolicy policy(wire::Duration::max());
  policy.found(kStart);
  EXPECT_EQ(looks_until(policy, kStart, Step::kYield), 16);
  policy.yielded(kStart, kStart + 3ms);
  EXPECT_TRUE(policy.is_contended(kStart + 22ms));
  policy.found(kStart + 22ms);
  EXPECT_EQ(looks_until(policy, kStart + 22ms, Step::kSleep), 16);
  EXPECT_FALSE(policy.is_contended(kStart + 23ms)) << "it asks again";
  EXPECT_TRUE(policy.sees_computing()) << "until it has yielded";
  EXPECT_EQ(looks_until(policy, kStart + 23ms, Step::kYield), 16);
  policy.yielded(kStart + 23ms, kStart + 23ms + 5us);
  EXPECT_FALSE(policy.sees_computing());
  EXPECT_EQ(looks_until(policy, kStart + 24ms, Step::kYield), 16);
}

TEST(WaitPolicy, SleepsAtOnceAmidALongMessageUntilNoBatchComes) {
  WaitPolicy policy(wire::Duration::max());
  for (int round = 0; round < 3; ++round) {
    policy.found(kStart);
    for (int n = 0; n < 5; ++n) EXPECT_EQ(policy.found_nothing(kStart, true), Step::kSleepForBatch);
    EXPECT_EQ(policy.found_nothing(kStart, true), Step::kLook);
  }
}

TEST(WaitPolicy, OfAThreadThatOthersWakeSleepsAfterEachLook) {
  WaitPolicy policy(0us);
  policy.found(kStart);
  EXPECT_EQ(policy.found_nothing(kStart, true), Step::kSleepForBatch);
  EXPECT_EQ(policy.found_nothing(kStart, false), Step::kSleep);
}

}  // namespace
}  // namespace cepheus::fabric
