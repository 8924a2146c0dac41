#include "controller/publisher.h"

#include <gtest/gtest.h>

namespace cepheus::mrp {
namespace {

using namespace std::chrono_literals;
using wire::MrpRegion;

constexpr Instant kBegin{};
constexpr MrpRegion kOne{7, 0x77, 0x1000, 64};
const wire::MrpMember kSelf{wire::Ipv4(10, 0, 0, 2), wire::Qpn(0x11), 0, 40000, 9};

wire::MrpHeader group() {
  wire::MrpHeader h;
  h.type = wire::MrpType::kRegister;
  h.epoch = 3;
  h.mcst_id = wire::McstId(198, 18, 0, 1);
  h.instance = 5;
  return h;
}

wire::MrpHeader confirm_of(const wire::Publication& sent) {
  wire::MrpHeader h = sent.header;
  h.flags = static_cast<std::uint16_t>(wire::MrpType::kPublish);
  h.type = wire::MrpType::kConfirm;
  return h;
}

TEST(Publisher, SendsNothingForAnEmptyList) {
  Publisher p;
  p.begin(kBegin, group(), kSelf);
  EXPECT_TRUE(p.is_in_force());
  EXPECT_EQ(p.deadline(), wire::kNever);
  EXPECT_FALSE(p.take_due(kBegin));
}

TEST(Publisher, WaitsForTheGroupAndSendsAllRegionsThen) {
  Publisher p;
  EXPECT_TRUE(p.add(kBegin, {9, 0x99, 0, 1}));
  EXPECT_TRUE(p.add(kBegin, kOne));
  EXPECT_FALSE(p.is_in_force());
  EXPECT_FALSE(p.take_due(kBegin + 1h));
  p.begin(kBegin, group(), kSelf);
  const auto sent = p.take_due(kBegin);
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->header.type, wire::MrpType::kPublish);
  EXPECT_EQ(sent->header.epoch, 3);
  EXPECT_EQ(sent->member, kSelf);
  ASSERT_EQ(sent->count, 2u);
  EXPECT_EQ(sent->regions[0], kOne) << "by rising number";
}

TEST(Publisher, IsRepeatedMoreAndMoreSlowlyUntilItIsConfirmed) {
  Publisher p;
  p.add(kBegin, kOne);
  p.begin(kBegin, group(), kSelf);
  const auto first = p.take_due(kBegin);
  EXPECT_EQ(p.deadline(), kBegin + times::kFirstRetry);
  EXPECT_FALSE(p.take_due(kBegin));
  const auto again = p.take_due(kBegin + times::kFirstRetry);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->header.seq, first->header.seq);
  EXPECT_EQ(p.deadline(), kBegin + 3 * times::kFirstRetry);
  p.on_confirm(kBegin, confirm_of(*first));
  EXPECT_TRUE(p.is_in_force());
  EXPECT_EQ(p.deadline(), wire::kNever);
}

TEST(Publisher, IsInForceOnlyWhenTheNewestIsConfirmed) {
  Publisher p;
  p.add(kBegin, kOne);
  p.begin(kBegin, group(), kSelf);
  const auto first = p.take_due(kBegin);
  EXPECT_TRUE(p.remove(kBegin, 7));
  EXPECT_FALSE(p.remove(kBegin, 7));
  p.on_confirm(kBegin, confirm_of(*first));
  EXPECT_FALSE(p.is_in_force());
  const auto second = p.take_due(kBegin);
  ASSERT_TRUE(second) << "at once";
  EXPECT_EQ(second->count, 0u);
  for (int what = 0; what < 3; ++what) {  // of another group, epoch, leader
    auto other = confirm_of(*second);
    if (what == 0) other.mcst_id = wire::McstId(198, 18, 0, 2);
    if (what == 1) ++other.epoch;
    if (what == 2) ++other.instance;
    p.on_confirm(kBegin, other);
    EXPECT_FALSE(p.is_in_force());
  }
  p.on_confirm(kBegin, confirm_of(*second));
  EXPECT_TRUE(p.is_in_force());
}

// A switch compares numbers on a circle of 16 bits with the newest number that it has received. A
// program may use up numbers without sending any of them.
TEST(Publisher, IsTakenForNewHoweverOftenItHasChangedMeanwhile) {
  Publisher p({}, 0x7FF0);
  p.begin(kBegin, group(), kSelf);
  p.add(kBegin, kOne);
  const auto known = p.take_due(kBegin);
  p.on_confirm(kBegin, confirm_of(*known));
  ASSERT_TRUE(p.is_in_force());
  MrpRegion last = kOne;
  for (std::uint32_t i = 0; i < 40'000; ++i) {
    last.rkey = i;
    p.add(kBegin, last);
  }
  const auto first = p.take_due(kBegin);
  ASSERT_TRUE(first);
  EXPECT_TRUE(wire::newer_epoch(first->header.seq, known->header.seq));
  p.on_confirm(kBegin, confirm_of(*first));
  EXPECT_FALSE(p.is_in_force()) << "the switch may have taken that number for an older change";
  const auto second = p.take_due(kBegin);
  ASSERT_TRUE(second);
  EXPECT_TRUE(wire::newer_epoch(second->header.seq, first->header.seq));
  EXPECT_EQ(second->regions[0], last);
  p.on_confirm(kBegin, confirm_of(*second));
  EXPECT_TRUE(p.is_in_force());
  EXPECT_EQ(p.deadline(), wire::kNever);
}

TEST(Publisher, MovesARegionAndTakesNoMoreThanADatagram) {
  Publisher p;
  for (std::uint16_t i = 0; i < wire::Publication::kMaxRegions; ++i) {
    EXPECT_TRUE(p.add(kBegin, {i, 1, 0, 1}));
  }
  EXPECT_FALSE(p.add(kBegin, {1000, 1, 0, 1}));
  EXPECT_TRUE(p.add(kBegin, {3, 2, 0, 1}));
  EXPECT_EQ(p.regions()[3].rkey, 2u);
}

TEST(Publisher, IsNotRepeatedOnceTheGroupHasEnded) {
  Publisher p;
  p.add(kBegin, kOne);
  p.begin(kBegin, group(), kSelf);
  p.end();
  EXPECT_EQ(p.deadline(), wire::kNever);
  EXPECT_FALSE(p.take_due(kBegin + 1h));
}

}  // namespace
}  // namespace cepheus::mrp
