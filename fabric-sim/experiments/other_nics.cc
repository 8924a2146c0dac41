// NICs that are not ours: one source at 100 Gb/s, three receivers behind slower links, and queues
// of boxes.
#include <algorithm>
#include <cstdio>
#include <string>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/multicast_group.h"
#include "nic-emulator/engine/nic_profile.h"

namespace cepheus::sim {
namespace other_nics {

using namespace std::chrono_literals;

constexpr std::size_t kHosts = 4;
constexpr double kGigabits = 100;
constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::uint64_t kPacket = 4096, kPacketOnWire = 4096 + 82;

struct Load {
  const char* name;
  std::uint32_t bytes;
  std::size_t messages;
};
constexpr Load kLoads[] = {
    {"64 MiB by 4 MiB", 4 * kMiB, 16}, {"8 MiB", 8 * kMiB, 1}, {"2000 of 4 KiB", 4 * kKiB, 2000}};
constexpr std::uint64_t kQueues[] = {4 * kMiB, kMiB, 280 * kKiB};
constexpr unsigned kSlower[] = {1, 3, 15};

struct Outcome {
  double ms = 0;        // until the source's last completion
  double ideal = 0;     // ms: the bytes over the slowest link, and one way
  double sent = 0;      // packets of the source, as a multiple of the needed ones
  double timeouts = 0;  // of NICs
};

Outcome run(const rnic::NicProfile& profile, const Load& load, std::uint64_t queue, unsigned slower,
            std::uint64_t seed) {
  net::LinkConfig fast = paper_link(kGigabits);
  net::Topology topology = net::Topology::star(kHosts, fast);
  for (std::size_t i = 0; i < kHosts; ++i) {
    net::HostSpec& host = topology.hosts[i];
    if (i != 0) host.down.rate = wire::BitRate{host.down.rate.bits_per_second / slower};
    host.down.queue_bytes = queue;
  }
  TestbedConfig config;
  config.seed = seed;
  config.memory = load.bytes;
  config.profile = &profile;
  config.ack_timeout = 67ms;  // code 14
  Testbed testbed(topology, config);
  MulticastGroup group(testbed, first_hosts(kHosts), kFirstGroup, 2048);
  const Instant begin = testbed.simulator().now();
  const auto before = testbed.totals();
  group.send_all(0, load.bytes, load.messages);
  testbed.run_until([&] { return group.is_done(); }, 300s);
  const auto after = testbed.totals();
  const double packets = static_cast<double>(load.bytes / kPacket * load.messages);
  Outcome outcome;
  outcome.ms = microseconds(group.completed_at() - begin) / 1000;
  outcome.ideal = packets * kPacketOnWire * 8 / (kGigabits / slower * 1e9) * 1000 + 0.004;
  outcome.sent = 1 + static_cast<double>(after.retransmitted - before.retransmitted) / packets;
  outcome.timeouts = static_cast<double>(after.timeouts - before.timeouts);
  return outcome;
}

void run_all(const ExperimentOptions& options, Report& report) {
  for (const rnic::NicProfile& profile : rnic::nic_profiles()) {
    if (!profile.is_make() || (options.quick && profile.name != "connectx")) continue;
    for (const Load& load : kLoads) {
      for (const std::uint64_t queue : kQueues) {
        for (const unsigned slower : kSlower) {
          const std::string name = std::string(profile.name) + ", " + load.name + ", queue " +
                                   std::to_string(queue / kKiB) + " KiB";
          report.progress(name);
          const Outcome o = run(profile, load, queue, slower, 1);
          char note[80];
          std::snprintf(note, sizeof note, "%.4g ms, sent %.3g times, %g time-outs", o.ms, o.sent,
                        o.timeouts);
          report.add(name, slower, o.ms / o.ideal, "of ideal", {.note = note});
        }
      }
    }
  }
}

}  // namespace other_nics

const Experiment kOtherNics = {
    "other-nics",
    "a source without a window of packets, slow receivers and short queues",
    "our own",
    "10 s quick, 1 min",
    "the receivers' links are slower by",
    "connectx, 64 MiB by 4 MiB, queue 280 KiB",
    "a NIC without a window loses most of its packets before slow links: nothing limits it yet",
    other_nics::run_all,
};

}  // namespace cepheus::sim
