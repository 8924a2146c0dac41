#include "switch-emulator/ports/processor.h"

#include <gtest/gtest.h>

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

TEST(Processor, WakingAThreadTakesMicroseconds) {
  const wire::Duration cost = cost_of_sleeping();
  EXPECT_GE(cost, 5us);
  EXPECT_LE(cost, 60us);
  EXPECT_EQ(cost_of_sleeping(), cost) << "it is measured once";
}

}  // namespace
}  // namespace cepheus::fabric
