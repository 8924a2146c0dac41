#include "switch-emulator/live/status/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "switch-emulator/engine/counters.h"

namespace cepheus::live {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

FabricStatus some_status() {
  FabricStatus status;
  status.uptime_seconds = 1.5;
  status.mtu = 4096;
  SwitchStatus s0;
  s0.name = "s0";
  s0.engine[fabric::Counter::kRxPackets] = 93;
  s0.engine[fabric::Counter::kDropNoRoute] = 4;
  PortStatus host;
  host.name = "h0";
  host.attached = true;
  host.rx.frames = 7;
  host.tx.bytes = 18'000'000'000'000'000'000U;
  host.in.dropped_loss = 3;
  host.out_up = false;
  host.engine[fabric::Counter::kDropNoRoute] = 4;
  host.access[fabric::PortCounter::kDoorbells] = 11;
  host.drops.queue_share = 2;
  host.queue.paused_us = 1500;
  PortStatus trunk;
  trunk.name = "s1";
  trunk.kind = net::PortKind::kSwitch;
  trunk.dark = true;
  s0.ports = {host, trunk};
  fabric::GroupView group;
  group.id = wire::McstId(198, 18, 0, 1);
  group.epoch = 3;
  group.active = true;
  group.paths.resize(2);
  group.paths[1].lag = 12;
  group.copies = 180;
  s0.groups = {group};
  s0.sender_groups.resize(2);  // two records of one group
  s0.sender_groups[1].addressed = wire::Ipv4(10, 0, 0, 3);
  status.switches = {s0};
  return status;
}

TEST(Metrics, AreTheStatusByName) {
  const std::string page = to_metrics(some_status());
  for (const char* line : {
           "cepheus_up 1\n",
           "cepheus_uptime_seconds 1.5\n",
           "cepheus_switch_rx_packets_total{switch=\"s0\"} 93\n",
           "cepheus_switch_drop_no_route_total{switch=\"s0\"} 4\n",
           "cepheus_switch_drop_spoofed_source_total{switch=\"s0\"} 0\n",
           "cepheus_port_drop_no_route_total{switch=\"s0\",port=\"h0\"} 4\n",
           "cepheus_port_doorbells_total{switch=\"s0\",port=\"h0\"} 11\n",
           "cepheus_port_drop_queue_share_total{switch=\"s0\",port=\"h0\"} 2\n",
           "cepheus_port_attached{switch=\"s0\",port=\"h0\"} 1\n",
           "cepheus_port_dark{switch=\"s0\",port=\"s1\"} 1\n",
           "cepheus_link_up{switch=\"s0\",port=\"h0\",way=\"out\"} 0\n",
           "cepheus_port_rx_frames_total{switch=\"s0\",port=\"h0\"} 7\n",
           "cepheus_port_paused_seconds_total{switch=\"s0\",port=\"h0\"} 0.0015\n",
           "cepheus_link_dropped_loss_total{switch=\"s0\",port=\"h0\",way=\"in\"} 3\n",
           "cepheus_port_tx_frame_bytes_total{switch=\"s0\",port=\"h0\"} 18000000000000000000\n",
           "cepheus_group_lag_packets{switch=\"s0\",group=\"198.18.0.1\",epoch=\"3\"} 12\n",
           "cepheus_group_copies_total{switch=\"s0\",group=\"198.18.0.1\",epoch=\"3\"} 180\n",
           "cepheus_metrics_left_out 0\n",
       }) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  EXPECT_THAT(page, Not(HasSubstr("cepheus_port_attached{switch=\"s0\",port=\"s1\"}")));
}

TEST(Metrics, HaveTheCountersDescriptions) {
  const std::string page = to_metrics(some_status());
  for (const wire::CounterText& text : fabric::kCounterTexts) {
    EXPECT_THAT(page,
                HasSubstr("# TYPE cepheus_switch_" + std::string(text.name) + "_total counter\n"));
    if (text.help.starts_with("...")) continue;
    EXPECT_THAT(page, HasSubstr("# HELP cepheus_switch_" + std::string(text.name) + "_total " +
                                std::string(text.help) + "\n"));
  }
  EXPECT_THAT(page, HasSubstr("# HELP cepheus_switch_rx_bytes_total frames received, their "
                              "bytes\n"))
      << "a line that goes on with the one before is whole";
}

TEST(Metrics, HaveEachFamilyOnceAndEachSampleOnce) {
  std::istringstream page(to_metrics(some_status()));
  std::set<std::string> families, samples;
  std::string line, family;
  while (std::getline(page, line)) {
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.rfind(' ') - 7);
      EXPECT_TRUE(families.insert(family).second) << line;
    } else if (!line.starts_with("#")) {
      EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << line;
      EXPECT_EQ(line.substr(0, line.find_first_of("{ ")), family) << "outside its family";
    }
  }
  EXPECT_GT(families.size(), 80u);
}

TEST(Metrics, EscapeNames) {
  FabricStatus status = some_status();
  status.switches[0].name = "a\"b\\c\nd\x1b";
  EXPECT_THAT(to_metrics(status),
              HasSubstr("cepheus_switch_groups{switch=\"a\\\"b\\\\c\\\\x0ad\\\\x1b\"} 1\n"));
}

TEST(Metrics, OmitSamplesBeyondTheLimit) {
  FabricStatus status = some_status();
  const std::string whole = to_metrics(status);
  status.switches[0].groups.resize(5000, status.switches[0].groups[0]);
  const std::string page = to_metrics(status, 1000);
  EXPECT_LT(page.size(), whole.size() + 1000 * 120);
  EXPECT_THAT(page, HasSubstr("cepheus_switch_groups{switch=\"s0\"} 5000\n"));
  const std::string left = page.substr(page.rfind(' ') + 1);
  EXPECT_GT(std::stoul(left), 5000u * 7 - 1000);
}

TEST(Metrics, WithoutAFabricHaveTheReason) {
  const std::string page = metrics_without_fabric("no fabric at /run/x\nforged_metric 1");
  EXPECT_THAT(page, StartsWith("# no fabric at /run/x\\x0aforged_metric 1\n"));
  EXPECT_THAT(page, HasSubstr("\ncepheus_up 0\n"));
}

}  // namespace
}  // namespace cepheus::live
