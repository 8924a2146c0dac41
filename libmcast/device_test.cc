#include "libmcast/device.h"

#include <gtest/gtest.h>

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;

TEST(TimeLimit, OfAReceiverIsThatOfASenderIfThatIsLong) {
  EXPECT_EQ(receiver_time_limit({}), wire::times::kReceiverGivesUp);
  EXPECT_EQ(receiver_time_limit(300ms), wire::times::kReceiverGivesUp);
  EXPECT_EQ(receiver_time_limit(60s), 60s);
}

}  // namespace
}  // namespace cepheus::mcast
