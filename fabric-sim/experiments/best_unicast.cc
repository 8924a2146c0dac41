// Multicast beside the best unicasts there are, on one switch: where it wins, and where it does
// not. The rival is a circulant graph with the best number of blocks and of sends at once. A
// one-armed box is modelled by slower links, not by a box's queues. The software of hosts takes no
// time here.
#include <algorithm>
#include <string>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/rivals.h"
#include "fabric-sim/experiments/unicast_run.h"

namespace cepheus::sim {
namespace best_unicast {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr double kGigabits = 100;

Testbed bed(std::size_t hosts, std::uint64_t bytes) {
  return {net::Topology::star(hosts, paper_link(kGigabits)),
          {.ack_timeout = kNoTimeout, .memory = bytes}};
}

// A box with one port beside the switch. All copies leave by its link, which is as fast as a host's:
// each of N receivers gets 1/N of it. The way to and from the box is a link longer, each way.
Testbed one_armed_bed(std::size_t hosts, std::uint64_t bytes) {
  const net::LinkConfig link = paper_link(kGigabits);
  net::Topology topology = net::Topology::star(hosts, paper_link(kGigabits, 2 * link.delay));
  for (net::HostSpec& host : topology.hosts) {
    host.down.rate = wire::BitRate{link.rate.bits_per_second / (hosts - 1)};
  }
  return {topology, {.ack_timeout = kNoTimeout, .memory = bytes}};
}

double time_by(Testbed testbed, std::size_t hosts, std::uint64_t bytes) {
  return microseconds(time_of_multicast(testbed, first_hosts(hosts), bytes).received);
}

// As many blocks as there are packets at most.
std::vector<std::size_t> numbers_of_blocks(std::uint64_t bytes) {
  std::vector<std::size_t> numbers = {1};
  for (std::size_t n = 4; n <= 1024 && n * 4096 <= bytes; n *= 2) numbers.push_back(n);
  return numbers;
}

void compare(std::size_t hosts, std::uint64_t bytes, Report& report) {
  const std::string of = std::to_string(hosts) + " hosts, ";
  report.progress(of + std::to_string(bytes) + " bytes");
  const auto x = static_cast<double>(bytes);
  const auto time_of_rival = [&](const Schedule& schedule) {
    Testbed testbed = bed(hosts, bytes);
    return microseconds(time_of(testbed, schedule, first_hosts(hosts)));
  };
  const double ours = time_by(bed(hosts, bytes), hosts, bytes);
  const double one_armed = time_by(one_armed_bed(hosts, bytes), hosts, bytes);
  const BestSetting rival = best_circulant(hosts, bytes, numbers_of_blocks(bytes), time_of_rival);
  report.add(of + "cepheus", x, ours, "us");
  report.add(of + "one-armed box", x, one_armed, "us");
  report.add(of + "circulant graph", x, rival.us, "us", {.note = rival.setting});
  report.add(of + "circulant graph over cepheus", x, rival.us / ours, "times");
  report.add(of + "circulant graph over one-armed box", x, rival.us / one_armed, "times");
}

void run(const ExperimentOptions& options, Report& report) {
  std::vector<std::size_t> hosts = {4, 16};
  std::vector<std::uint64_t> sizes = {64, 16 * kKiB, 64 * kKiB, kMiB, 16 * kMiB};
  if (!options.quick) {
    hosts.push_back(64);
    sizes = {64, 4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 16 * kMiB, 128 * kMiB};
  }
  for (const std::size_t n : hosts) {
    for (const std::uint64_t bytes : sizes) compare(n, bytes, report);
  }
}

}  // namespace best_unicast

const Experiment kBestUnicast = {
    "best-unicast",
    "one broadcast by size: Cepheus, and a one-armed box, beside a circulant graph of unicasts",
    "our own",
    "10 s quick, 1 min",
    "bytes",
    "16 hosts, circulant graph over cepheus",
    "four times faster when small, 7 % when large; a one-armed box loses from 16 KiB on",
    best_unicast::run,
};

}  // namespace cepheus::sim
