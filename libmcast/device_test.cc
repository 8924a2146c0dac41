#include "libmcast/device.h"

#include <gtest/gtest.h>

#include "controller/registration.h"

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;

TEST(Patience, OfASenderOutlastsTheDevicesRetriesWhateverIsAsked) {
  EXPECT_EQ(sender_patience(2s, kEmulatedTimers), 2s);
  EXPECT_EQ(sender_patience(200ms, kEmulatedTimers), retry_time(kEmulatedTimers));
  EXPECT_EQ(retry_time(kDefaultTimers), 8 * 4096ns * (1 << 18));
  EXPECT_EQ(sender_patience(2s, kDefaultTimers), retry_time(kDefaultTimers));
}

// A member that died is taken out before the others give up what they sent.
TEST(Patience, OfASenderOutlastsAMembersEviction) {
  EXPECT_GT(sender_patience({}, kEmulatedTimers), mrp::RegistrationConfig{}.evict_after);
  EXPECT_GT(sender_patience({}, kDefaultTimers), mrp::RegistrationConfig{}.evict_after);
}

TEST(Patience, OfAReceiverIsThatOfASenderIfThatIsLong) {
  EXPECT_EQ(receiver_patience({}), wire::times::kReceiverGivesUp);
  EXPECT_EQ(receiver_patience(300ms), wire::times::kReceiverGivesUp);
  EXPECT_EQ(receiver_patience(60s), 60s);
}

}  // namespace
}  // namespace cepheus::mcast
