// NICs that are not ours: one source at 100 Gb/s, three receivers behind slower links, and queues
// of boxes. The source keeps the window that the switch announces, as collectives do; for comparison
// the switch announces none, and the source posts all at once.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

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
constexpr double kLosses[] = {1e-4, 1e-3};

struct Case {
  const rnic::NicProfile& profile;
  const Load& load;
  std::uint64_t queue;
  unsigned slower;
  double loss = 0;  // of copies: the source's own link loses nothing
  bool is_announced = true;

  double packets() const { return static_cast<double>(load.bytes / kPacket * load.messages); }
  double ms_of(double packets_on_slow_link) const {
    return packets_on_slow_link * kPacketOnWire * 8 / (kGigabits / slower * 1e6);
  }
  // The bytes over the slowest link, and one way.
  double ideal() const { return ms_of(packets()) + 0.004; }
  // There and back with empty queues.
  double round_trip() const { return ms_of(1) + ms_of(1) / slower + 0.004; }
};

struct Outcome {
  double ms = 0;        // until the source's last completion
  double sent = 0;      // packets of the source, as a multiple of the needed ones
  double timeouts = 0;  // of NICs
  double losses = 0;    // by chance
};

Outcome run(const Case& c, std::uint64_t seed) {
  net::LinkConfig fast = paper_link(kGigabits);
  net::Topology topology = net::Topology::star(kHosts, fast);
  for (std::size_t i = 0; i < kHosts; ++i) {
    net::HostSpec& host = topology.hosts[i];
    if (i != 0) host.down.rate = wire::BitRate{host.down.rate.bits_per_second / c.slower};
    host.down.queue_bytes = c.queue;
  }
  if (c.loss > 0) lose(topology, LossAt::kCopies, c.loss);
  topology.switches[0].config.rules.announced_window = c.is_announced;
  TestbedConfig config;
  config.seed = seed;
  config.memory = c.load.bytes;
  config.profile = &c.profile;
  config.ack_timeout = 67ms;  // code 14
  Testbed testbed(topology, config);
  MulticastGroup group(testbed, first_hosts(kHosts), kFirstGroup, 1 << 12);
  const Instant begin = testbed.simulator().now();
  const auto before = testbed.totals();
  group.send_all(0, c.load.bytes, c.load.messages);
  testbed.run_until([&] { return group.is_done(); }, 300s);
  const auto after = testbed.totals();
  Outcome outcome;
  outcome.ms = microseconds(group.completed_at() - begin) / 1000;
  outcome.sent = 1 + static_cast<double>(after.retransmitted - before.retransmitted) / c.packets();
  outcome.timeouts = static_cast<double>(after.timeouts - before.timeouts);
  outcome.losses = static_cast<double>(after.losses - before.losses);
  return outcome;
}

std::string text(const Outcome& o) {
  char text[80];
  std::snprintf(text, sizeof text, "%.4g ms, sent %.3g times, %g time-outs", o.ms, o.sent,
                o.timeouts);
  return text;
}

std::string name_of(const Case& c) {
  return std::string(c.profile.name) + ", " + c.load.name + ", queue " +
         std::to_string(c.queue / kKiB) + " KiB";
}

// The median time with losses, as a multiple of twice the lossless time and a round trip for each
// loss.
double of_bound(Case c, double loss, double lossless_ms, unsigned seeds) {
  c.loss = loss;
  std::vector<double> all;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    const Outcome o = run(c, seed);
    all.push_back(o.ms / (2 * lossless_ms + o.losses * c.round_trip()));
  }
  return median(all);
}

void measure(const Case& c, const ExperimentOptions& options, Report& report) {
  report.progress(name_of(c));
  const Outcome o = run(c, 1);
  Case at_once = c;
  at_once.is_announced = false;
  std::string note = text(o) + "; all at once " + text(run(at_once, 1));
  for (const double loss : kLosses) {
    char more[64];
    std::snprintf(more, sizeof more, "; loss %g: %.3g of its bound", loss,
                  of_bound(c, loss, o.ms, options.seeds_or(1, 3)));
    note += more;
  }
  report.add(name_of(c), c.slower, o.ms / c.ideal(), "of ideal", {.note = note});
}

void run_all(const ExperimentOptions& options, Report& report) {
  for (const rnic::NicProfile& profile : rnic::nic_profiles()) {
    if (!profile.is_make() || (options.quick && profile.name != "connectx")) continue;
    for (const Load& load : kLoads) {
      for (const std::uint64_t queue : kQueues) {
        for (const unsigned slower : kSlower) {
          measure({profile, load, queue, slower}, options, report);
        }
      }
    }
  }
}

}  // namespace other_nics

const Experiment kOtherNics = {
    "other-nics",
    "a source that keeps the announced window, slow receivers and short queues",
    "our own",
    "5 s quick, 1 min",
    "the receivers' links are slower by",
    "connectx, 64 MiB by 4 MiB, queue 280 KiB",
    "near the ideal with the window; without it a NIC that has none takes up to 132 times as long",
    other_nics::run_all,
};

}  // namespace cepheus::sim
