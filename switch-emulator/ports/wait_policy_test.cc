#include "switch-emulator/ports/wait_policy.h"

#include <gtest/gtest.h>

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using Step = WaitPolicy::Step;

constexpr wire::Instant kStart{1h};

// Looks each microsecond from `now` on until the policy returns something else than another look.
struct Looked {
  Step step;
  wire::Duration time;
  bool operator==(const Looked&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Looked& looked) {
  return out << "step " << static_cast<int>(looked.step) << " after " << looked.time.count();
}
Looked look(WaitPolicy& policy, wire::Instant now) {
  for (const wire::Instant began = now;; now += 1us) {
    const Step step = policy.found_nothing(now, false);
    if (step != Step::kLook) return {step, now - began};
  }
}

TEST(WaitPolicy, YieldsTheCoreNowAndThen) {
  WaitPolicy policy(wire::Duration::max());
  policy.found(kStart);
  EXPECT_EQ(look(policy, kStart), (Looked{Step::kYield, 2us}));
  policy.yielded(kStart, kStart + 400us);
  EXPECT_EQ(look(policy, kStart + 401us), (Looked{Step::kYield, 2us}))
      << "it went to one that polls";
  EXPECT_EQ(look(policy, kStart + 1h), (Looked{Step::kYield, 2us}));
}

TEST(WaitPolicy, YieldsTheCoreAfterTwoLongLooks) {
  WaitPolicy policy(wire::Duration::max());
  policy.found(kStart);
  EXPECT_EQ(policy.found_nothing(kStart + 8us, false), Step::kLook);
  EXPECT_EQ(policy.found_nothing(kStart + 16us, false), Step::kYield) << "not after 16 of them";
}

// It tests now and then whether a message has come.
TEST(WaitPolicy, NeverYieldsForAProgramThatComputesBetweenItsLooks) {
  WaitPolicy policy(wire::Duration::max());
  policy.found(kStart);
  for (int i = 1; i < 1000; ++i) {
    EXPECT_EQ(policy.found_nothing(kStart + i * 100us, false), Step::kLook);
    EXPECT_EQ(policy.found_nothing(kStart + i * 100us + 1us, false), Step::kLook);
  }
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
  EXPECT_EQ(look(policy, kStart), (Looked{Step::kYield, 2us}));
  EXPECT_EQ(look(policy, kStart + 10us), (Looked{Step::kYield, 2us}));
  EXPECT_EQ(look(policy, kStart + 18us), (Looked{Step::kSleep, 2us}));
  policy.found(kStart + 30us);
  EXPECT_EQ(look(policy, kStart + 31us), (Looked{Step::kYield, 2us}));
}

TEST(WaitPolicy, YieldsTheCoreBeforeItSleepsHoweverCheapThatIs) {
  WaitPolicy policy(1us);
  policy.found(kStart);
  EXPECT_EQ(look(policy, kStart + 10us), (Looked{Step::kYield, 2us}));
  EXPECT_EQ(look(policy, kStart + 20us), (Looked{Step::kSleep, 2us}));
}

TEST(WaitPolicy, YieldsTheCoreAfterEachLookWithoutATurn) {
  WaitPolicy policy(20us, 0us);
  policy.found(kStart);
  EXPECT_EQ(policy.found_nothing(kStart + 30us, false), Step::kYield);
  EXPECT_EQ(policy.found_nothing(kStart + 30us, false), Step::kSleep);
}

TEST(WaitPolicy, SleepsForAWhileAfterAYieldedCoreWasTakenForLong) {
  WaitPolicy policy(wire::Duration::max());
  policy.found(kStart);
  EXPECT_EQ(look(policy, kStart).step, Step::kYield);
  policy.yielded(kStart, kStart + 3ms);
  EXPECT_TRUE(policy.is_contended(kStart + 22ms));
  policy.found(kStart + 22ms);
  EXPECT_EQ(look(policy, kStart + 22ms), (Looked{Step::kSleep, 2us}));
  EXPECT_EQ(look(policy, kStart + 22ms + 500us), (Looked{Step::kSleep, 2us})) << "and again";
  EXPECT_FALSE(policy.is_contended(kStart + 23ms)) << "it asks again";
  EXPECT_TRUE(policy.sees_computing()) << "until it has yielded";
  EXPECT_EQ(look(policy, kStart + 23ms).step, Step::kYield);
  policy.yielded(kStart + 23ms, kStart + 23ms + 5us);
  EXPECT_FALSE(policy.sees_computing());
  EXPECT_EQ(look(policy, kStart + 24ms).step, Step::kYield);
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
