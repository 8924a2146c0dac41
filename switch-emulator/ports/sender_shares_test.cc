#include "switch-emulator/ports/sender_shares.h"

#include <gtest/gtest.h>

namespace cepheus::fabric {
namespace {

TEST(SenderShares, OfTheFabricItselfIsNoHosts) {
  SenderShares<std::uint32_t> shares;
  for (SenderNo host = 0; host < 3 * RingShares::kClasses; ++host) {
    shares[RingShares::of(host)].add();
  }
  EXPECT_EQ(shares[RingShares::of(RingShares::kClasses - 1)].held(), 3u);
  EXPECT_EQ(shares[RingShares::of(kFabricItself)].held(), 0u);
}

}  // namespace
}  // namespace cepheus::fabric
