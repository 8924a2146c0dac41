// One long Allreduce, a sum of doubles in the switches, beside unicasts in rounds, on a fat-tree. The
// hosts' sums and all software take no time. Packets have lengths only: no value is compared.
//
// Runs with too many packets are computed by closed forms, and their notes say so.
#include <algorithm>
#include <string>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/closed_forms.h"
#include "fabric-sim/experiments/exchange_run.h"
#include "fabric-sim/experiments/reduction_team.h"

namespace cepheus::sim {
namespace allreduce_bandwidth {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr std::uint64_t kMostBytes = 64 * kMiB;  // by packets
constexpr std::uint64_t kMostHops = 12'000'000;  // the same, of a rival
constexpr const char* kRabenseifner = "Rabenseifner";

class Fabric {
 public:
  explicit Fabric(std::size_t hosts)
      : topology_(part_of_fat_tree(hosts, paper_link())), ways_(topology_) {}

  const Ways& ways() const { return ways_; }
  std::size_t hosts() const { return ways_.hosts(); }
  Testbed bed(std::uint64_t bytes) const {
    return {topology_, {.memory = bytes, .has_live_nics = true, .has_lengths_only = true}};
  }

 private:
  net::Topology topology_;
  Ways ways_;
};

struct Time {
  double us = 0, expected = 0;
  bool has_packets = false;
  std::string source() const { return has_packets ? "packets" : "closed form"; }
};

struct Rival {
  std::string name;
  Time time;
};

Time time_of_rival(const Fabric& fabric, std::uint64_t bytes, const Exchanges& exchanges) {
  const double expected = us_of(exchanges, fabric.ways());
  if (bytes > kMostBytes || hops_of(exchanges, fabric.ways()) > kMostHops) {
    return {expected, expected, false};
  }
  Testbed testbed = fabric.bed(bytes);
  const auto time = time_of(testbed, exchanges, first_hosts(fabric.hosts()));
  return {microseconds(time), expected, true};
}

std::vector<Rival> measure_rivals(const Fabric& fabric, std::uint64_t bytes, const std::string& of,
                                  Report& report) {
  std::vector<Rival> rivals;
  const auto measure = [&](const std::string& name, const Exchanges& exchanges) {
    report.progress(of + name + ", " + std::to_string(bytes) + " bytes");
    const Time time = time_of_rival(fabric, bytes, exchanges);
    report.add(of + name, static_cast<double>(bytes), time.us, "us",
               {.expected = time.expected, .note = time.source()});
    rivals.push_back({name, time});
  };
  const std::size_t n = fabric.hosts();
  measure("recursive doubling", recursive_doubling(n, bytes));
  measure(kRabenseifner, rabenseifner(n, bytes));
  measure("ring", ring(n, bytes));
  measure("circulant graph", circulant_allreduce(n, bytes));
  return rivals;
}

// Published times of a reduction in a real switch with 100 Gb/s and the hosts' software, and times of
// coll/tuned over them: mpitofino with 4 hosts.
struct Peer {
  std::uint64_t bytes;
  double us, times;
};
constexpr Peer kPeers[] = {{64 * kKiB, 14.4, 34.0 / 14.4}, {kMiB, 154, 317.0 / 154}};
constexpr const char* kPeer = "; paper: mpitofino with software";

const Peer* peer_of(std::size_t hosts, std::uint64_t bytes) {
  const auto at = std::ranges::find(kPeers, bytes, &Peer::bytes);
  return hosts != 4 || at == std::end(kPeers) ? nullptr : at;
}

double share_of_line_rate(std::uint64_t bytes, double us, const Ways& ways) {
  return static_cast<double>(bytes) * 8e6 / us / static_cast<double>(ways.rate().bits_per_second);
}

// `team`: null for the closed form.
Time time_of_ours(const Fabric& fabric, std::uint64_t bytes, ReductionTeam* team) {
  const double expected = us_of_reduction(bytes, ReductionTeam::kUsual.unit, fabric.ways());
  if (team == nullptr) return {expected, expected, false};
  return {microseconds(team->sum(bytes)), expected, true};
}

void compare(const Fabric& fabric, std::uint64_t bytes, ReductionTeam* team, Report& report) {
  const std::string of = std::to_string(fabric.hosts()) + " hosts, ";
  const auto x = static_cast<double>(bytes);
  const std::vector<Rival> rivals = measure_rivals(fabric, bytes, of, report);
  report.progress(of + "cepheus, " + std::to_string(bytes) + " bytes");
  const Time ours = time_of_ours(fabric, bytes, team);
  const Peer* const peer = peer_of(fabric.hosts(), bytes);
  Beside time{.expected = ours.expected, .note = ours.source()};
  if (peer != nullptr) time = {peer->us, ours.expected, ours.source() + kPeer};
  report.add(of + "cepheus", x, ours.us, "us", time);
  report.add(
      of + "share", x, share_of_line_rate(bytes, ours.us, fabric.ways()), "of line rate",
      {.expected = share_of_line_rate(bytes, ours.expected, fabric.ways()), .note = ours.source()});
  const auto over_ours = [&](const std::string& series, const Rival& rival, Beside beside) {
    beside.expected = rival.time.expected / ours.expected;
    beside.note = rival.name + " by " + rival.time.source() + beside.note;
    report.add(of + series, x, rival.time.us / ours.us, "times", beside);
  };
  const Rival& best = *std::ranges::min_element(rivals, {}, [](auto& r) { return r.time.us; });
  Beside ratio;
  if (peer != nullptr) ratio = {.paper = peer->times, .note = kPeer};
  over_ours("best rival over cepheus", best, ratio);
  Rival rabenseifner = *std::ranges::find(rivals, kRabenseifner, &Rival::name);
  over_ours("Rabenseifner over cepheus", rabenseifner, {});
  rabenseifner.time = {rabenseifner.time.expected, rabenseifner.time.expected, false};
  over_ours("Rabenseifner alone on its links over cepheus", rabenseifner, {});
}

void run(const ExperimentOptions& options, Report& report) {
  std::vector<std::size_t> hosts = {4, 64};
  std::vector<std::uint64_t> sizes = {64 * kKiB, kMiB, 4 * kMiB};
  if (!options.quick) {
    hosts = {4, 8, 64, 512};
    sizes = {64 * kKiB, 256 * kKiB, kMiB, 8 * kMiB, kMostBytes, kGiB};
  }
  for (const std::size_t n : hosts) {
    const Fabric fabric(n);
    Testbed testbed = fabric.bed(kMostBytes);
    ReductionTeam team(testbed, first_hosts(n), ReductionTeam::kOrdered);
    team.gather(0);  // before it, some members may not know yet that the group is active
    for (const std::uint64_t bytes : sizes) {
      compare(fabric, bytes, bytes <= kMostBytes ? &team : nullptr, report);
    }
  }
}

}  // namespace allreduce_bandwidth

const Experiment kAllreduceBandwidth = {
    "allreduce-bandwidth",
    "one Allreduce of 64 KiB to 1 GiB, summed by the switches, beside unicasts in rounds",
    "our own",
    "3 s quick, 4 min",
    "bytes",
    "64 hosts, Rabenseifner over cepheus",
    "twice as fast for long vectors, more where the rival's messages share links",
    allreduce_bandwidth::run,
};

}  // namespace cepheus::sim
