// One small Allreduce, and one Barrier, beside unicasts, on a fat-tree. The switches gather all
// blocks, and the hosts reduce them. The hosts' reduction and all software take no time here.
//
// Rivals in rounds send one message a round. The direct rival sends to all others at once. It would
// always be the fastest if messages took no time of the sender's software, so a second row has such
// a time.
#include <algorithm>
#include <functional>
#include <string>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/closed_forms.h"
#include "fabric-sim/experiments/exchange_run.h"
#include "fabric-sim/experiments/reduction_team.h"

namespace cepheus::sim {
namespace allreduce_latency {

using namespace std::chrono_literals;

constexpr wire::Duration kPost = 100ns;  // our own estimate
// Rivals with more messages are not simulated.
constexpr std::size_t kMostMessages = 20'000;

std::string counted(std::size_t n, const std::string& what) {
  return std::to_string(n) + ' ' + what + (n == 1 ? "" : "s");
}

struct Rival {
  std::string name;
  Exchanges exchanges;
  bool is_direct = false;
};

// The first hosts of a fat-tree. Only the links' rate and delay differ from the shipped defaults.
class Fabric {
 public:
  explicit Fabric(std::size_t hosts)
      : topology_(part_of_fat_tree(hosts, link())), ways_(topology_) {}

  const Ways& ways() const { return ways_; }
  std::size_t hosts() const { return ways_.hosts(); }
  Testbed bed() const { return {topology_, {.memory = 1 << 13, .has_live_nics = true}}; }

 private:
  static net::LinkConfig link() {
    net::LinkConfig link;
    link.rate = paper_link().rate;
    link.delay = paper_link().delay;
    return link;
  }

  net::Topology topology_;
  Ways ways_;
};

// The best rival in rounds, and the direct rival with kPost for each message.
struct Unicasts {
  std::string best;
  double best_us = 0, direct_us = 0;
};

double us_of_rival(const Fabric& fabric, const Exchanges& exchanges, wire::Duration post) {
  Testbed testbed = fabric.bed();
  return microseconds(time_of(testbed, exchanges, first_hosts(fabric.hosts()), post));
}

Unicasts measure_unicasts(const Fabric& fabric, const std::vector<Rival>& rivals,
                          const std::string& of, double x, Report& report) {
  Unicasts unicasts;
  const auto measure = [&](const Rival& rival, wire::Duration post) {
    report.progress(of + rival.name);
    const bool is_simulated = messages_of(rival.exchanges) <= kMostMessages;
    const double expected = us_of(rival.exchanges, fabric.ways(), microseconds(post));
    const double us = is_simulated ? us_of_rival(fabric, rival.exchanges, post) : expected;
    const std::string name = of + rival.name + (post > 0ns ? ", 100 ns a message" : "");
    report.add(name, x, us, "us",
               {.expected = expected, .note = is_simulated ? "" : "by arithmetic, not simulated"});
    return us;
  };
  for (const Rival& rival : rivals) {
    const double us = measure(rival, 0ns);
    if (rival.is_direct) {
      unicasts.direct_us = measure(rival, kPost);
    } else if (unicasts.best.empty() || us < unicasts.best_us) {
      unicasts = {rival.name, us, unicasts.direct_us};
    }
  }
  return unicasts;
}

// Published figures of reductions in real switches, on other links and with the hosts' software.
// `times` is the rival's time over `us`. mpitofino's rival is Open MPI's coll/tuned.
struct Peer {
  std::size_t hosts, bytes;
  double us, times;
  const char* name;
};
constexpr Peer kPeers[] = {
    {4, 8, 7.9, 4.8 / 7.9, "mpitofino with software, 4 bytes"},
    {4, 4096, 8.1, 8.8 / 8.1, "mpitofino with software"},
    {128, 8, 2.83, 2.1, "SHARP with software"},
};

const Peer* peer_of(std::size_t hosts, std::size_t bytes) {
  const auto at = std::ranges::find_if(
      kPeers, [&](const Peer& p) { return p.hosts == hosts && p.bytes == bytes; });
  return at == std::end(kPeers) ? nullptr : at;
}

std::optional<double> us_in(const Peer* peer) {
  return peer == nullptr ? std::nullopt : std::optional(peer->us);
}

std::optional<double> times_in(const Peer* peer) {
  return peer == nullptr ? std::nullopt : std::optional(peer->times);
}

std::string source_of(const Peer* peer) {
  return peer == nullptr ? "" : std::string("; paper: ") + peer->name;
}

// Time of a gather by the switches, and its row beside that of `peer`, if not null.
double measure_gather(const Fabric& fabric, std::size_t block, const std::string& series, double x,
                      Report& report, const Peer* peer = nullptr) {
  report.progress(series);
  const Ways& ways = fabric.ways();
  const std::size_t bytes = fabric.hosts() * block;
  constexpr std::size_t kUnit = ReductionTeam::kUsual.unit;
  const double bound = us_of_reduction(bytes, kUnit, ways);
  Testbed testbed = fabric.bed();
  const double us = microseconds(time_of_gather(testbed, first_hosts(fabric.hosts()), block));
  const std::string note = counted(units_of(bytes, kUnit), "unit") + ", " +
                           std::to_string(2 * ways.links_to_middle()) + " links";
  report.add(series, x, us, "us",
             {.paper = us_in(peer), .expected = bound, .note = note + source_of(peer)});
  return us;
}

void compare(const Fabric& fabric, std::size_t block, Report& report) {
  const std::size_t n = fabric.hosts();
  const std::string of = std::to_string(n) + " hosts, ";
  const auto x = static_cast<double>(block);
  const Peer* const peer = peer_of(n, block);
  const std::size_t units = units_of(n * block, ReductionTeam::kUsual.unit);
  const std::vector<Rival> rivals = {
      {"recursive doubling", recursive_doubling(n, block)},
      {"Rabenseifner", rabenseifner(n, block)},
      {"ring", ring(n, block)},
      {"circulant graph", circulant_allreduce(n, block)},
      {"direct", direct(n, block), true},
  };
  const Unicasts unicasts = measure_unicasts(fabric, rivals, of, x, report);
  const std::string ours = of + "cepheus", ratio = of + "rounds over cepheus";
  if (units > ReductionTeam::kMostUnits) {
    const std::string note = std::to_string(units) + " units, beyond " +
                             std::to_string(ReductionTeam::kMostUnits) +
                             ": the MPI library's own, as fast as " + unicasts.best;
    report.add(ours, x, unicasts.best_us, "us", {.note = note});
    return;
  }
  const double us = measure_gather(fabric, block, ours, x, report, peer);
  report.add(ratio, x, unicasts.best_us / us, "times",
             {.paper = times_in(peer), .note = unicasts.best + source_of(peer)});
  report.add(of + "direct, 100 ns a message, over cepheus", x, unicasts.direct_us / us, "times");
}

void run(const ExperimentOptions& options, Report& report) {
  std::vector<std::size_t> hosts = {4, 8, 128}, sizes = {8, 256, 4096};
  if (!options.quick) {
    hosts = {4, 8, 64, 128, 512, 1024};
    sizes = {8, 32, 128, 512, 2048, 4096};
  }
  for (const std::size_t n : hosts) {
    const Fabric fabric(n);
    for (const std::size_t block : sizes) compare(fabric, block, report);
  }
}

void run_barrier(const ExperimentOptions& options, Report& report) {
  std::vector<std::size_t> hosts = {4, 8, 128};
  if (!options.quick) hosts = {4, 8, 16, 32, 64, 128, 256, 512, 1024};
  for (const std::size_t n : hosts) {
    const Fabric fabric(n);
    const auto x = static_cast<double>(n);
    const std::vector<Rival> rivals = {
        {"recursive doubling", recursive_doubling(n, 0)},
        {"circulant graph", circulant_barrier(n)},
        {"binomial tree", tree_barrier(n)},
        {"ring", ring_barrier(n)},
        {"direct", direct(n, 0), true},
    };
    const Unicasts unicasts = measure_unicasts(fabric, rivals, "", x, report);
    const double us = measure_gather(fabric, 0, "cepheus", x, report);
    report.add("rounds over cepheus", x, unicasts.best_us / us, "times", {.note = unicasts.best});
    report.add("direct, 100 ns a message, over cepheus", x, unicasts.direct_us / us, "times");
  }
}

}  // namespace allreduce_latency

const Experiment kAllreduceLatency = {
    "allreduce-latency",
    "one Allreduce of 8 bytes to 4 KiB by a gather in the switches, beside unicasts",
    "our own",
    "4 s quick, 1 min",
    "bytes",
    "128 hosts, rounds over cepheus",
    "more than SHARP's with 8 bytes; less with larger blocks, because their gather takes more "
    "packets",
    allreduce_latency::run,
};

const Experiment kBarrier = {
    "barrier",
    "one Barrier in the switches, beside unicasts",
    "our own",
    "1 s quick, 10 s",
    "hosts",
    "rounds over cepheus",
    "2 to 7 times as fast",
    allreduce_latency::run_barrier,
};

}  // namespace cepheus::sim
