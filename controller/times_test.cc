// What hosts take the switches' times to be is what switches do unless a topology says otherwise.
#include "controller/times.h"

#include <gtest/gtest.h>

#include "net/switch_config.h"

namespace cepheus::mrp::times {
namespace {

TEST(Times, OfSwitchesAreTheirDefaults) {
  const net::SwitchConfig config;
  EXPECT_EQ(config.confirm_wait, kSwitchConfirm);
  EXPECT_EQ(config.orphan_age, kSwitchOrphan);
  EXPECT_EQ(config.rest, kSwitchRest);
  EXPECT_EQ(config.pending_age, kSwitchPending);
  EXPECT_EQ(config.age, kSwitchAge);
}

}  // namespace
}  // namespace cepheus::mrp::times
