#include "collectives/core/call_check.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace cepheus::coll {
namespace {

using Mistake = CallCheck::Mistake;

ControlMessage called(std::uint64_t unit, std::uint64_t bytes) {
  ControlMessage message{};
  message.kind = ControlMessage::Kind::kCalled;
  message.unit = unit;
  message.value = bytes;
  return message;
}

TEST(CallCheck, ARootCallsOnceAUnitAndOnlyAfterItsTimeLimit) {
  CallCheck check;
  const CallCheck::Time start{};
  EXPECT_FALSE(check.is_due({5, 0, 100}, start));
  EXPECT_FALSE(check.is_due({5, 0, 100}, start + CallCheck::kTimeLimit / 2));
  EXPECT_TRUE(check.is_due({5, 0, 100}, start + CallCheck::kTimeLimit));
  EXPECT_FALSE(check.is_due({5, 0, 100}, start + 3 * CallCheck::kTimeLimit));
  EXPECT_FALSE(check.is_due({6, 0, 100}, start + 3 * CallCheck::kTimeLimit)) << "the next unit";
  EXPECT_TRUE(check.is_due({6, 0, 100}, start + 4 * CallCheck::kTimeLimit));
}

TEST(CallCheck, AMemberThatIsOnlyLateHasMadeNoMistake) {
  CallCheck check;
  check.receive(2, called(7, 100000));
  EXPECT_FALSE(check.look({6, 2, 10}));
  EXPECT_FALSE(check.look({7, 2, 100000}));
  EXPECT_FALSE(check.look({8, 1, 10}));
}

TEST(CallCheck, FindsAnotherRootAndAnotherCount) {
  CallCheck check;
  check.receive(2, called(7, 100000));
  const auto root = check.look({7, 1, 100000});
  ASSERT_TRUE(root);
  EXPECT_EQ(root->kind, Mistake::Kind::kRoot);
  EXPECT_EQ(root->from, 2);
  const auto count = check.look({7, 2, 10});
  ASSERT_TRUE(count);
  EXPECT_EQ(count->kind, Mistake::Kind::kCount);
  EXPECT_EQ(count->bytes, 100000u);
}

TEST(CallCheck, AMistakeThatAnotherRankHasFoundEndsTheCallOfThatUnitOnly) {
  CallCheck check;
  ControlMessage message = called(7, 1);
  message.kind = ControlMessage::Kind::kMistake;
  std::snprintf(message.reason, sizeof message.reason, "rank 3 passes 10 bytes");
  check.receive(3, message);
  EXPECT_FALSE(check.look({8, 0, 10}));
  const auto report = check.look({7, 0, 10});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kind, Mistake::Kind::kReported);
  EXPECT_EQ(report->reason, "rank 3 passes 10 bytes");
}

}  // namespace
}  // namespace cepheus::coll
