#include "fabric-sim/experiments/settings.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "fabric-sim/experiments/command.h"
#include "nic-emulator/engine/live_defaults.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

rnic::NicConfig shipped(const net::Topology& topology) {
  return rnic::live_defaults(topology.mtu, topology.slowest_rate());
}

TEST(Settings, ADefaultFabricHasNone) {
  const net::Topology topology = net::Topology::star(4);
  EXPECT_THAT(unusual_settings(topology, shipped(topology)), IsEmpty());
}

TEST(Settings, OfEitherDirectionOfALinkAreNamed) {
  net::Topology topology = net::Topology::star(2);
  const rnic::NicConfig nic = shipped(topology);
  topology.mtu = 1024;
  topology.hello = {};
  topology.hosts[1].down.loss = 0.5;
  EXPECT_THAT(unusual_settings(topology, nic),
              ElementsAre("NIC max_mtu = 4096 (1024)", "hello = \"0ns\"", "link = { loss = 0.5 }",
                          "mtu = 1024"));
}

TEST(Settings, OfSwitchesAndRulesAreNamed) {
  net::Topology topology = net::Topology::star(2);
  topology.switches[0].config.rules.fewest_groups = false;
  topology.switches[0].config.rules.cnp_policy = net::CnpPolicy::kTmcf;
  topology.switches[0].config.cnp_window = 50us;
  EXPECT_THAT(
      unusual_settings(topology, shipped(topology)),
      ElementsAre("cnp_policy = \"tmcf\"", "cnp_window = \"50us\"", "rule fewest_groups = off"));
}

TEST(Settings, OfNicsStandBesideTheShippedOnes) {
  const net::Topology topology = net::Topology::star(2);
  rnic::NicConfig nic = shipped(topology);
  nic.timeout_doublings = 0;
  nic.manners.acks_stale_psn = true;
  nic.congestion.emplace();
  nic.congestion->reaction.g = 0.5;
  EXPECT_THAT(unusual_settings(topology, nic),
              ElementsAre("DCQCN g = 0.5", "NIC congestion = DCQCN (off)",
                          "NIC manners = true (false)", "NIC timeout_doublings = 0 (6)"));
}

std::string page_of(std::string_view name) {
  const std::string path = CEPHEUS_SOURCE_DIR "/docs/experiments/" + std::string(name) + ".md";
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

constexpr const char* kTitle = "Settings of some or all runs that are not the shipped defaults:";

// The lines below the title, without their indentation.
std::string settings_in(const std::string& text) {
  std::istringstream lines(text.substr(std::min(text.size(), text.find(kTitle))));
  std::string all;
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    all += line.substr(line.find_first_not_of(' ')) + '\n';
  }
  return all;
}

TEST(Settings, ThatAnExperimentPrintsAreThoseOnItsPage) {
  for (const char* name : {"cepheus-fig8", "cepheus-memory"}) {
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    EXPECT_EQ(run_experiment({false, name, {.quick = true}, ""}), 0);
    testing::internal::GetCapturedStderr();
    const std::string printed = testing::internal::GetCapturedStdout();
    EXPECT_EQ(settings_in(printed), settings_in(page_of(name))) << name;
  }
}

}  // namespace
}  // namespace cepheus::sim
