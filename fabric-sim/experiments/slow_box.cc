// A box with one port beside a switch. All copies leave by that port, so the box takes N times as
// long for a packet to N receivers as the source. Each of its rings holds 1,024 frames. Runs differ
// in the NICs' make, the announced window, and the box's manners at its transmit ring. Times are
// quotients of the port's own.
#include <cstdio>
#include <string>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/multicast_group.h"
#include "nic-emulator/engine/nic_profile.h"

namespace cepheus::sim {
namespace slow_box {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint32_t kMessage = 4 * kMiB;
constexpr std::size_t kMessages = 16;
constexpr double kPackets = kMessages * kMessage / 4096.0;
constexpr wire::Duration kCopy = 332ns;  // 4154 bytes at 100 Gb/s

struct Case {
  const rnic::NicProfile& profile;
  std::size_t receivers;
  const char* what = "";  // the difference from the first rows, behind the make in a row's name
  BoxManners box = {};
  bool is_announced = true;

  // The box's port sends all copies one after the other.
  double ideal_ms() const {
    return kPackets * static_cast<double>(receivers) * microseconds(kCopy) / 1000;
  }
};

BoxManners usual_box() {
  BoxManners box;
  box.receive_ring = box.transmit_ring = 1024;
  box.per_frame = 100ns;
  box.per_copy = kCopy;
  return box;
}

void measure(const Case& c, Report& report) {
  const std::string name = std::string(c.profile.name) + c.what;
  report.progress(name + ", " + std::to_string(c.receivers) + " receivers");
  net::Topology topology = net::Topology::star(c.receivers + 1, paper_link());
  net::SwitchConfig& config = topology.switches[0].config;
  config.data_slots = c.box.data_slots();
  config.rules.announced_window = c.is_announced;
  TestbedConfig bed;
  bed.memory = kMessage;
  bed.profile = &c.profile;
  bed.ack_timeout = 67ms;  // code 14
  bed.box = c.box;
  Testbed testbed(topology, bed);
  MulticastGroup group(testbed, first_hosts(c.receivers + 1), kFirstGroup, 1 << 11);
  const Instant begin = testbed.simulator().now();
  group.send_all(0, kMessage, kMessages);
  testbed.run_until([&] { return group.is_done(); }, 300s);
  const double ms = microseconds(group.completed_at() - begin) / 1000;
  const auto totals = testbed.totals();
  const Box::Drops& drops = testbed.network().switches()[0]->box()->drops();
  char note[160];
  std::snprintf(note, sizeof note,
                "%.4g ms, sent %.3g times, %llu time-outs; dropped %llu frames and %llu copies", ms,
                1 + static_cast<double>(totals.retransmitted) / kPackets,
                static_cast<unsigned long long>(totals.timeouts),
                static_cast<unsigned long long>(drops.receive_ring),
                static_cast<unsigned long long>(drops.transmit_ring));
  report.add(name, static_cast<double>(c.receivers), ms / c.ideal_ms(), "of ideal", {.note = note});
}

void run_all(const ExperimentOptions& options, Report& report) {
  BoxManners dropping = usual_box(), swapping = usual_box();
  dropping.waits_for_space = false;
  swapping.swaps_copies = true;
  for (const rnic::NicProfile& profile : rnic::nic_profiles()) {
    if (!profile.is_make() || (options.quick && profile.name != "connectx")) continue;
    for (const std::size_t n : {3, 15}) {
      measure({profile, n, "", usual_box()}, report);
      measure({profile, n, ", no window", usual_box(), false}, report);
      measure({profile, n, ", drops copies one by one", dropping}, report);
      measure({profile, n, ", two transmit queues", swapping}, report);
    }
  }
}

}  // namespace slow_box

const Experiment kSlowBox = {
    "slow-box",
    "a source that is faster than the box which copies its data",
    "our own",
    "1 s quick, 10 s",
    "receivers",
    "connectx",
    "at the box's own rate with the window, and one transmit ring that waits",
    slow_box::run_all,
};

}  // namespace cepheus::sim
