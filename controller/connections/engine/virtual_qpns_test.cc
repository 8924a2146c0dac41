#include "controller/connections/engine/virtual_qpns.h"

#include <gtest/gtest.h>

#include "wire/sender_group.h"

namespace cepheus::connections {
namespace {

constexpr std::uint32_t kCount = wire::kLastSenderGroupQpn - wire::kFirstSenderGroupQpn + 1;
constexpr wire::Instant kStart{std::chrono::seconds(1)};

TEST(VirtualQpns, AreOfTheRangeAndGoRoundIt) {
  VirtualQpns qpns(kCount - 1);
  EXPECT_EQ(qpns.take(kStart)->value(), wire::kLastSenderGroupQpn);
  EXPECT_EQ(qpns.take(kStart)->value(), wire::kFirstSenderGroupQpn);
  EXPECT_EQ(qpns.held(), 2u);
}

TEST(VirtualQpns, RestBeforeTheyAreTakenAgain) {
  VirtualQpns qpns(0);
  const auto first = qpns.take(kStart);
  for (std::uint32_t i = 1; i < kCount; ++i) qpns.take(kStart);
  EXPECT_FALSE(qpns.take(kStart));
  qpns.give_back(*first, kStart);
  EXPECT_FALSE(qpns.take(kStart + std::chrono::seconds(10) - wire::Duration(1)));
  EXPECT_EQ(qpns.take(kStart + std::chrono::seconds(10)), first);
  EXPECT_EQ(qpns.held(), kCount);
}

}  // namespace
}  // namespace cepheus::connections
