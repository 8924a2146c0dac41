#include "controller/virtual_qpns.h"

#include <gtest/gtest.h>

namespace cepheus::mrp {
namespace {

constexpr QpnRange kThree{0xC00010, 0xC00012};
constexpr wire::Instant kStart{std::chrono::seconds(1)};

TEST(VirtualQpns, AreOfTheRangeAndGoRoundIt) {
  VirtualQpns qpns(kThree, 2);
  EXPECT_EQ(qpns.take(kStart)->value(), kThree.last);
  EXPECT_EQ(qpns.take(kStart)->value(), kThree.first);
  EXPECT_EQ(qpns.held(), 2u);
}

TEST(VirtualQpns, RestBeforeTheyAreTakenAgain) {
  VirtualQpns qpns(kThree, 0);
  const auto first = qpns.take(kStart);
  qpns.take(kStart);
  qpns.take(kStart);
  EXPECT_FALSE(qpns.take(kStart));
  qpns.give_back(*first, kStart);
  EXPECT_EQ(qpns.held(), 2u);
  EXPECT_FALSE(qpns.take(kStart + VirtualQpns::kRest - wire::Duration(1)));
  EXPECT_EQ(qpns.take(kStart + VirtualQpns::kRest), first);
  EXPECT_EQ(qpns.held(), 3u);
}

TEST(VirtualQpns, OfTheDaemonAndOfOtherProgramsNeverMeet) {
  VirtualQpns chosen(kChosenQpns, kChosenQpns.last - kChosenQpns.first);
  VirtualQpns given(kDaemonQpns, kDaemonQpns.last - kDaemonQpns.first);
  EXPECT_EQ(chosen.take(kStart)->value(), 0xDFFFFFu);
  EXPECT_EQ(chosen.take(kStart)->value(), 0xC00000u);
  EXPECT_EQ(given.take(kStart)->value(), 0xFFFFFEu);
  EXPECT_EQ(given.take(kStart)->value(), 0xE00000u);
}

}  // namespace
}  // namespace cepheus::mrp
