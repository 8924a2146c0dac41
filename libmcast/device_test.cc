#include "libmcast/device.h"

#include <gtest/gtest.h>

#include "controller/registration.h"

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;

TEST(TimeLimit, OfASenderOutlastsTheDevicesRetriesEvenIfSetLower) {
  EXPECT_EQ(sender_time_limit(2s, kEmulatedTimers), 2s);
  EXPECT_EQ(sender_time_limit(200ms, kEmulatedTimers), retry_time(kEmulatedTimers));
  EXPECT_EQ(retry_time(kDefaultTimers), 8 * 4096ns * (1 << 18));
  EXPECT_EQ(sender_time_limit(2s, kDefaultTimers), retry_time(kDefaultTimers));
}

// A dead member is evicted before the watchdogs of the others end their sends.
TEST(TimeLimit, OfASenderOutlastsAMembersEviction) {
  EXPECT_GT(sender_time_limit({}, kEmulatedTimers), mrp::RegistrationConfig{}.evict_after);
  EXPECT_GT(sender_time_limit({}, kDefaultTimers), mrp::RegistrationConfig{}.evict_after);
}

TEST(TimeLimit, OfAReceiverIsThatOfASenderIfThatIsLong) {
  EXPECT_EQ(receiver_time_limit({}), wire::times::kReceiverGivesUp);
  EXPECT_EQ(receiver_time_limit(300ms), wire::times::kReceiverGivesUp);
  EXPECT_EQ(receiver_time_limit(60s), 60s);
}

}  // namespace
}  // namespace cepheus::mcast
