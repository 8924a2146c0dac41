#include "libmcast/engine/send_window.h"

#include <gtest/gtest.h>

namespace cepheus::mcast {
namespace {

TEST(SendWindow, WithoutANumberAdmitsAll) {
  SendWindow window;
  EXPECT_EQ(window.portion(), 0u);
  window.posted(1'000'000);
  EXPECT_TRUE(window.admits(1'000'000));
}

TEST(SendWindow, IsFullWithTwoMessagesOfItsPortion) {
  SendWindow window;
  window.open(33);
  EXPECT_EQ(window.portion(), 16u);
  EXPECT_EQ(window.longest(), 33u);
  window.posted(16);
  EXPECT_TRUE(window.admits(16));
  window.posted(16);
  EXPECT_FALSE(window.admits(16));
  EXPECT_TRUE(window.admits(1));
  window.ended(16);
  EXPECT_TRUE(window.admits(16));
}

TEST(SendWindow, HasSpaceForMessagesOfOnePacket) {
  SendWindow window;
  EXPECT_EQ(window.space(), UINT64_MAX);
  window.open(4);
  EXPECT_EQ(window.space(), 4u);
  window.posted(3);
  EXPECT_EQ(window.space(), 1u);
  window.renew(2);
  EXPECT_EQ(window.space(), 0u);
  window.ended(3);
  EXPECT_EQ(window.space(), 2u);
}

TEST(SendWindow, KeepsItsPortionWhenItIsRenewed) {
  SendWindow window;
  window.open(64);
  window.renew(8);
  EXPECT_EQ(window.portion(), 32u);
  EXPECT_TRUE(window.admits(32)) << "no other is under way";
  window.posted(32);
  EXPECT_FALSE(window.admits(1));
  window.renew(256);
  EXPECT_TRUE(window.admits(224));
  EXPECT_FALSE(window.admits(225));
}

TEST(SendWindow, HasPortionsForAWayThatLosesPackets) {
  SendWindow window;
  window.open(505);
  EXPECT_EQ(window.portion(), 64u);
  EXPECT_EQ(window.longest(), 505u);
}

TEST(SendWindow, HasLongerPortionsForAWayThatTakesMany) {
  SendWindow window;
  window.open(1023);
  EXPECT_EQ(window.portion(), 64u);
  window.open(1024);
  EXPECT_EQ(window.portion(), 256u) << "four fill it";
  window.open(1 << 20);
  EXPECT_EQ(window.portion(), 256u);
}

// As rdma_rxe and the emulated NIC do, whatever is posted.
TEST(SendWindow, LeavesTheLimitToANicThatKeepsIt) {
  SendWindow window(512);
  window.open(512);
  EXPECT_EQ(window.portion(), 64u) << "as at members with other NICs";
  EXPECT_EQ(window.longest(), 0u);
  EXPECT_EQ(window.longest_part(), 0u);
  window.posted(1'000'000);
  EXPECT_TRUE(window.admits(1'000'000));
  window.renew(511);
  EXPECT_FALSE(window.admits(1));
  window.open(511);
  EXPECT_EQ(window.longest(), 511u);
  EXPECT_EQ(window.longest_part(), 64u);
}

TEST(SendWindow, OfOnePacketAdmitsOnePacket) {
  SendWindow window;
  window.open(1);
  EXPECT_EQ(window.portion(), 1u);
  window.posted(1);
  EXPECT_FALSE(window.admits(1));
}

}  // namespace
}  // namespace cepheus::mcast
