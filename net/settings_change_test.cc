#include "net/settings_change.h"

#include <gmock/gmock.h>

#include "net/shapes.h"

namespace cepheus::net {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Topology two_leaves() { return *from_shape("leaf-spine:2x1x2"); }

TEST(SettingsChange, IsNothingBetweenEquals) {
  const auto change = compare(two_leaves(), two_leaves());
  EXPECT_THAT(change.taken, IsEmpty());
  EXPECT_THAT(change.needs_restart, IsEmpty());
}

TEST(SettingsChange, NamesAdoptedSettings) {
  Topology next = two_leaves();
  next.users = {"ann"};
  SwitchConfig& config = next.switches[1].config;
  config.max_groups = 1;
  config.max_groups_per_host = 2;
  config.register_rate = 3;
  config.probe_rate = 8;
  config.max_paths = 4;
  config.reduction_memory = 1 << 20;
  config.age = config.pending_age = config.orphan_age = config.gate_age = std::chrono::seconds(7);
  config.feedback_wait = std::chrono::milliseconds(5);
  config.rules.cnp_policy = CnpPolicy::kTmcf;
  config.cnp_window = std::chrono::milliseconds(1);
  const auto change = compare(two_leaves(), next);
  const std::string of = "switch " + next.switches[1].name + ": ";
  EXPECT_THAT(
      change.taken,
      ElementsAre("users = [\"ann\"]", of + "age = \"7s\"", of + "cnp_policy = \"tmcf\"",
                  of + "cnp_window = \"1ms\"", of + "feedback_wait = \"5ms\"",
                  of + "gate_age = \"7s\"", of + "max_groups = 1", of + "max_groups_per_host = 2",
                  of + "max_paths = 4", of + "orphan_age = \"7s\"", of + "pending_age = \"7s\"",
                  of + "probe_rate = 8", of + "reduction_memory = \"1MiB\"",
                  of + "register_rate = 3"));
  EXPECT_THAT(change.needs_restart, IsEmpty());
  EXPECT_EQ(with_settings(two_leaves(), next).to_toml(), next.to_toml());
}

TEST(SettingsChange, NamesSettingsThatNeedARestart) {
  Topology next = two_leaves();
  next.mtu = 1024;
  next.hello = std::chrono::milliseconds(5);
  next.switches[0].config.rules.source_change = SourceChange::kHostSync;
  next.switches[0].config.max_groups = 5;
  next.hosts[2].up.loss = next.hosts[2].down.loss = 0.5;
  const auto change = compare(two_leaves(), next);
  EXPECT_THAT(change.taken, ElementsAre("switch leaf0: max_groups = 5"));
  EXPECT_THAT(change.needs_restart, ElementsAre("hello = \"5ms\"", "mtu = 1024",
                                                "switch leaf0: source_change = \"host-sync\"",
                                                "host h2: link = { loss = 0.5 }"));
}

TEST(SettingsChange, NamesHostsAndTrunksThatComeGoAndMove) {
  const Topology two = Topology::star(2), three = Topology::star(3);
  EXPECT_THAT(compare(two, three).needs_restart, ElementsAre("host h2 is new"));
  EXPECT_THAT(compare(three, two).needs_restart, ElementsAre("host h2 is removed"));
  Topology moved = three;
  std::swap(moved.hosts[0], moved.hosts[2]);
  EXPECT_THAT(compare(three, moved).needs_restart, ElementsAre("host h2 is where host h0 was"));
  Topology cut = two_leaves();
  cut.trunks.pop_back();
  EXPECT_THAT(compare(two_leaves(), cut).needs_restart,
              ElementsAre("trunk [\"leaf1\", \"spine0\"] is removed"));
  EXPECT_THAT(compare(two_leaves(), three).needs_restart,
              ElementsAre("switch s0 is where switch leaf0 was"));
}

}  // namespace
}  // namespace cepheus::net
