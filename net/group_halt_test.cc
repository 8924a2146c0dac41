#include "net/group_halt.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace cepheus::net {
namespace {

using namespace std::chrono_literals;

constexpr wire::McstId kGroup(239, 0, 0, 1), kOtherGroup(239, 0, 0, 2);
constexpr wire::PortId kIngress(0), kSecond(1);

// The frames are numbers. All ports of a group are paused until one time.
class Halts : public testing::Test {
 protected:
  static constexpr wire::Instant kNow{1ms};

  auto when() {
    return [this](wire::McstId group, wire::PortId) { return paused_until[group]; };
  }
  std::vector<int> take(wire::Instant now) {
    std::vector<int> taken;
    for (int item = 0; halt.pop(now, item, when());) taken.push_back(item);
    return taken;
  }
  std::map<wire::McstId, wire::Instant> paused_until{{kGroup, kNow + 10us},
                                                     {kOtherGroup, kNow + 5us}};
  GroupHalt<int> halt{2};
};

TEST_F(Halts, AGroupWaitsWhileOneOfItsPortsIsPausedAndThenGoesOnInOrder) {
  EXPECT_TRUE(halt.must_wait(kGroup, kIngress, kNow, paused_until[kGroup]));
  for (const int item : {1, 2, 3}) halt.push(kGroup, kIngress, item, kNow);
  EXPECT_TRUE(take(kNow + 9us).empty());
  EXPECT_EQ(halt.ready_at(when()), kNow + 10us);
  EXPECT_EQ(take(kNow + 10us), (std::vector{1, 2, 3}));
  EXPECT_TRUE(halt.is_empty());
  EXPECT_EQ(halt.ready_at(when()), wire::kNever);
}

TEST_F(Halts, ALaterFrameWaitsBehindEarlierOnesOfItsIngress) {
  halt.push(kGroup, kIngress, 1, kNow);
  const wire::Instant later = kNow + 20us;
  EXPECT_TRUE(halt.must_wait(kGroup, kIngress, later, {})) << "its own ports are free";
  halt.push(kGroup, kIngress, 2, later);
  EXPECT_EQ(take(later), (std::vector{1, 2}));
  EXPECT_FALSE(halt.must_wait(kGroup, kIngress, later, {}));
}

// Frames up a tree and frames down it wait for different ports. In one line, each direction would
// wait for the other, at two switches.
TEST_F(Halts, AFrameOfTheGroupFromAnotherIngressGoesOn) {
  halt.push(kGroup, kIngress, 1, kNow);
  EXPECT_FALSE(halt.must_wait(kGroup, kSecond, kNow, kNow));
  halt.push(kGroup, kSecond, 2, kNow);
  const auto free_at = [](wire::McstId, wire::PortId port) {
    return port == kIngress ? kNow + 10us : kNow;
  };
  int item = 0;
  EXPECT_EQ(halt.pop(kNow, item, free_at), kSecond);
  EXPECT_EQ(item, 2);
  EXPECT_FALSE(halt.pop(kNow, item, free_at));
}

TEST_F(Halts, OneGroupDoesNotWaitForAnother) {
  halt.push(kGroup, kIngress, 1, kNow);
  EXPECT_FALSE(halt.must_wait(kOtherGroup, kIngress, kNow, kNow));
  halt.push(kOtherGroup, kIngress, 2, kNow);
  EXPECT_EQ(halt.ready_at(when()), kNow + 5us);
  EXPECT_EQ(take(kNow + 5us), (std::vector{2}));
  EXPECT_EQ(take(kNow + 10us), (std::vector{1}));
}

TEST_F(Halts, AreCountedByIngressWithTheirTime) {
  halt.push(kGroup, kSecond, 1, kNow);
  halt.push(kGroup, kSecond, 2, kNow + 2us);
  EXPECT_EQ(halt.counters(kSecond, kNow + 4us).halts, 1u);
  EXPECT_EQ(halt.counters(kSecond, kNow + 4us).time, 4us) << "it lasts";
  EXPECT_EQ(halt.counters(kIngress, kNow + 4us).halts, 0u);
  take(kNow + 12us);
  EXPECT_EQ(halt.counters(kSecond, kNow + 30us).time, 12us) << "it has ended";
  halt.push(kOtherGroup, kIngress, 3, kNow + 30us);
  EXPECT_EQ(halt.totals(kNow + 31us).halts, 2u);
  EXPECT_EQ(halt.totals(kNow + 31us).time, 13us);
}

}  // namespace
}  // namespace cepheus::net
