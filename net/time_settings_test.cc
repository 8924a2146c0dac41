#include "net/time_settings.h"

#include <gmock/gmock.h>

#include "net/topology.h"

namespace cepheus::net {
namespace {

namespace times = wire::times;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

struct Violation {
  Duration SwitchConfig::*setting;
  Duration least_wrong;  // ... just beyond its limit
  Duration last_right;
  const char* names;  // in the text, beside the setting
};

class TimeSettings : public testing::TestWithParam<Violation> {};

TEST(TimeSettings, OfADefaultSwitchHold) {
  EXPECT_FALSE(find_time_problem(SwitchConfig()));
  EXPECT_EQ(problem_of_hello(SwitchConfig().hello), "");
}

TEST_P(TimeSettings, AreCheckedAgainstTimesOfHosts) {
  SwitchConfig config;
  config.*GetParam().setting = GetParam().least_wrong;
  const auto problem = find_time_problem(config);
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->text, AllOf(HasSubstr(problem->setting + " = \""), HasSubstr("; write "),
                                   HasSubstr(GetParam().names)));
  config.*GetParam().setting = GetParam().last_right;
  EXPECT_FALSE(find_time_problem(config)) << find_time_problem(config)->text;
}

INSTANTIATE_TEST_SUITE_P(
    Each, TimeSettings,
    testing::Values(
        Violation{&SwitchConfig::gate_age, times::kLeaderEvicts, times::kLeaderEvicts + 1ns,
                  "6200ms"},
        Violation{&SwitchConfig::gate_age, times::kSwitchAge, times::kSwitchAge - 1ns,
                  "age = \"10min\""},
        Violation{&SwitchConfig::pending_age, times::kLeastPending, times::kLeastPending + 1ns,
                  "refreshes every second"},
        Violation{&SwitchConfig::pending_age, times::kSwitchAge, times::kSwitchAge - 1ns,
                  "age = \"10min\""},
        Violation{&SwitchConfig::orphan_age, times::kSenderLives, times::kSenderLives + 1ns,
                  "1200ms"},
        Violation{&SwitchConfig::orphan_age, 4s, 4s - 1ns, "senders would give their group up"},
        Violation{&SwitchConfig::rest, times::kLongestRetry, times::kLongestRetry + 1ns,
                  "UNREGISTER"},
        Violation{&SwitchConfig::rest, times::kAddressRest, times::kAddressRest - 1ns, "10s"},
        Violation{&SwitchConfig::confirm_wait, 5ms, 5ms - 1ns, "REGISTER"},
        Violation{&SwitchConfig::feedback_wait, times::kSourceRepeats, times::kSourceRepeats - 1ns,
                  "time out before"},
        Violation{&SwitchConfig::age, 6min, 6min + 1ns, "REFRESH"},
        Violation{&SwitchConfig::age, Duration::max(), 364 * 24h, "a year"},
        Violation{&SwitchConfig::cnp_window, 0s, times::kCnpGap + 1ns, "notifications"}));

TEST(TimeSettings, OfTrunksAreCheckedAgainstSenders) {
  EXPECT_NE(problem_of_hello(1s), "");
  EXPECT_EQ(problem_of_hello(1s - 1ns), "");
  EXPECT_NE(problem_of_hello(99us), "");
  EXPECT_EQ(problem_of_hello(0s), "");
}

// Simulated topologies are made by code, and their hosts have their own times.
TEST(TimeSettings, AreCheckedInFilesOnly) {
  Topology topology = Topology::star(2);
  topology.switches[0].config.gate_age = 1ms;
  EXPECT_TRUE(topology.plan());
  EXPECT_FALSE(Topology::from_toml(topology.to_toml()));
}

}  // namespace
}  // namespace cepheus::net
