#include "libmcast/nic_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "wire/times.h"

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr NicMake kMakes[] = {NicMake::kEmulated, NicMake::kSoftRoce, NicMake::kIrdma,
                              NicMake::kHardware};

TEST(NicTiming, OutlastsALinkThatIsDownForAMoment) {
  EXPECT_EQ(NicTiming(NicMake::kEmulated).timers().ack_timeout, 14);
  EXPECT_EQ(NicTiming(NicMake::kSoftRoce).timers().ack_timeout, 18);
  EXPECT_EQ(NicTiming(NicMake::kHardware).timers().ack_timeout, 16);
  EXPECT_GT(retry_time(NicTiming(NicMake::kHardware).timers()), kLinkOutage);
  EXPECT_EQ(NicTiming(NicMake::kHardware, 8s).timers().ack_timeout, 18);
  EXPECT_EQ(NicTiming(NicMake::kEmulated, 8s).timers().ack_timeout, 14) << "its time-outs double";
}

// A member whose NIC repeats as late as it may, and whose first repeat is lost, is not dead. A
// member that is dead is evicted before the other members give up, and before a switch does.
TEST(NicTiming, EvictsNoMemberThatMayStillRepeat) {
  for (const NicMake make : kMakes) {
    for (const wire::Duration outage : {wire::Duration(kLinkOutage), wire::Duration(8s)}) {
      const NicTiming timing(make, outage);
      const wire::Duration gone =
          wire::times::kLeaderEvicts - wire::times::kEvict + timing.evict_after();
      EXPECT_GT(timing.evict_after(), 2 * timing.latest_repeat());
      EXPECT_GT(timing.sender_time_limit({}), gone);
      EXPECT_LT(gone, wire::times::kSwitchGate);
    }
  }
  EXPECT_GT(NicTiming(NicMake::kHardware).evict_after(), 8s) << "4 s, twice";
  EXPECT_EQ(NicTiming(NicMake::kEmulated).evict_after(), wire::times::kEvict);
}

TEST(NicTiming, LimitsASenderByTheDevicesRetriesAtLeast) {
  const NicTiming emulated(NicMake::kEmulated), rxe(NicMake::kSoftRoce);
  EXPECT_EQ(emulated.sender_time_limit(2s), 2s);
  EXPECT_GE(emulated.sender_time_limit(200ms), retry_time(emulated.timers()));
  EXPECT_EQ(rxe.sender_time_limit(2s), retry_time(rxe.timers()));
  EXPECT_GT(NicTiming(NicMake::kHardware).sender_time_limit(2s), 4096ms);
}

TEST(NicTiming, NamesAParameterThatContradictsTheNic) {
  const NicTiming rxe(NicMake::kSoftRoce);
  EXPECT_THAT(contradiction(rxe, {}, 2s), HasSubstr("progress_timeout_ms 2000 becomes 8590"));
  EXPECT_THAT(contradiction(rxe, {}, 9s), IsEmpty());
  EXPECT_THAT(contradiction(rxe, 2s, {}), IsEmpty());
  EXPECT_THAT(contradiction(NicTiming(NicMake::kIrdma), 2s, {}), HasSubstr("this NIC ignores"));
}

// An emulated NIC with the manners of another make reports how late it repeats.
TEST(NicTiming, TakesTheTimeThatTheNicReports) {
  const NicTiming usual(NicMake::kEmulated);
  const NicTiming late(usual, 4295ms, true);
  EXPECT_EQ(late.timers().ack_timeout, usual.timers().ack_timeout);
  EXPECT_EQ(late.evict_after(), 8690ms);
  EXPECT_EQ(late.sender_time_limit(2s), 4795ms);
  EXPECT_THAT(contradiction(late, {}, 2s), HasSubstr("progress_timeout_ms 2000 becomes 4795"));
  EXPECT_THAT(contradiction(late, 2s, {}), HasSubstr("this NIC ignores"));
  EXPECT_THAT(contradiction(usual, 2s, 2s), IsEmpty());
}

TEST(NicTiming, KnowsTheMakes) {
  const std::string sysfs = "/tmp/cepheus-sysfs-" + std::to_string(getpid());
  std::filesystem::create_directories(sysfs + "/rxe0/parent");
  EXPECT_EQ(make_of("rxe0", 0, sysfs), NicMake::kSoftRoce);
  EXPECT_EQ(make_of("rocep1s0", 0x8086, sysfs), NicMake::kIrdma);
  EXPECT_EQ(make_of("mlx5_0", 0x02C9, sysfs), NicMake::kHardware);
  std::filesystem::remove_all(sysfs);
}

}  // namespace
}  // namespace cepheus::mcast
