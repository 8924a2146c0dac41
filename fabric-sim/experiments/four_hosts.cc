// The papers' testbeds of four hosts at one switch, with the time that the hosts' software takes.
// Each size is compared twice: with hosts that relay at no extra cost, and with a cost that is
// fitted to Cepheus fig. 8. Cepheus's time is the network's and one host path; rivals pay it at
// each hop.
#include <algorithm>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/rivals.h"
#include "fabric-sim/experiments/unicast_run.h"

namespace cepheus::sim {
namespace four_hosts {

using namespace std::chrono_literals;

constexpr std::size_t kHosts = 4;
constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

// Without a cost of relaying: the host times that Cepheus fig. 10 implies, and nothing of fig. 8.
constexpr HostCost kPlain{.post = kHostPost, .receive = kHostPath};
// A relaying host takes 16 us more. That is fitted to Cepheus fig. 8 (5.2 times a chain's time, 3.5
// times a tree's), so fig. 8 can't check it.
constexpr HostCost kRelaying{.post = kHostPost, .receive = kHostPath, .relay = 16'000ns};
constexpr const char* kFitted = "fitted to Cepheus fig. 8";

Testbed bed(std::uint64_t bytes) {
  return {net::Topology::star(kHosts, paper_link(100, 0ns)), {.memory = bytes}};
}

double time_of_cepheus(std::uint64_t bytes) {
  Testbed testbed = bed(bytes);
  const auto network = time_of_multicast(testbed, first_hosts(kHosts), bytes).received;
  return microseconds(kHostPost + network + kHostPath);
}

TimeOfSchedule rivals_with(const HostCost& cost) {
  return [cost](const Schedule& schedule) {
    Testbed testbed = bed(schedule.bytes());
    return microseconds(time_of(testbed, schedule, first_hosts(kHosts), cost));
  };
}

// Open MPI's chain: a slice for each host, unless a slice would be smaller than a packet.
Schedule chain_of(std::uint64_t bytes) {
  return chain(kHosts, bytes, std::clamp<std::size_t>(bytes / 4096, 1, kHosts));
}

struct Papers {
  std::optional<double> over_chain, over_tree;
};

// Both rivals, with this cost of hosts.
void compare_with(const HostCost& cost, const std::string& suffix, const std::string& note,
                  std::uint64_t bytes, const Papers& paper, Report& report) {
  const auto x = static_cast<double>(bytes);
  const double ours = time_of_cepheus(bytes);
  const double chained = rivals_with(cost)(chain_of(bytes));
  const double tree = rivals_with(cost)(binomial_tree(kHosts, bytes));
  report.add("chain" + suffix, x, chained, "us", {.note = note});
  report.add("binomial tree" + suffix, x, tree, "us", {.note = note});
  report.add("over chain" + suffix, x, chained / ours, "times",
             {.paper = paper.over_chain, .note = note});
  report.add("over binomial tree" + suffix, x, tree / ours, "times",
             {.paper = paper.over_tree, .note = note});
}

void compare(std::uint64_t bytes, const Papers& paper, Report& report) {
  report.progress(std::to_string(bytes) + " bytes");
  report.add("cepheus", static_cast<double>(bytes), time_of_cepheus(bytes), "us");
  compare_with(kPlain, "", "", bytes, paper, report);
  compare_with(kRelaying, ", relay 16 us", kFitted, bytes, paper, report);
}

// A chain and a circulant graph with their best settings, with this cost of hosts.
void compare_best(const HostCost& cost, const std::string& suffix, std::uint64_t bytes,
                  Report& report) {
  const auto x = static_cast<double>(bytes);
  std::vector<std::size_t> slices;
  for (std::size_t n = kHosts; n <= 1024 && n * 4096 <= bytes; n *= 4) slices.push_back(n);
  const BestSetting best = best_chain(kHosts, bytes, slices, rivals_with(cost));
  report.add("tuned chain" + suffix, x, best.us, "us", {.note = best.setting});
  report.add("over tuned chain" + suffix, x, best.us / time_of_cepheus(bytes), "times",
             {.note = best.setting});
  slices.push_back(1);
  const BestSetting rounds = best_circulant(kHosts, bytes, slices, rivals_with(cost));
  report.add("circulant graph" + suffix, x, rounds.us, "us", {.note = rounds.setting});
  report.add("over circulant graph" + suffix, x, rounds.us / time_of_cepheus(bytes), "times",
             {.note = rounds.setting});
}

void run_fig8(const ExperimentOptions&, Report& report) {
  compare(64, {5.2, 3.5}, report);
  for (const std::uint64_t bytes : {256, 1024, 4096, 16384}) compare(bytes, {}, report);
  compare(64 * kKiB, {3.0, 2.5}, report);
}

void run_fig9(const ExperimentOptions& options, Report& report) {
  const std::uint64_t large = options.quick ? 128 * kMiB : 512 * kMiB;
  const std::pair<std::uint64_t, Papers> sizes[] = {
      {128 * kKiB, {2.8, 2.8}}, {kMiB, {}}, {16 * kMiB, {}}, {large, {1.3, 2.0}}};
  for (const auto& [bytes, paper] : sizes) {
    compare(bytes, paper, report);
    compare_best(kPlain, "", bytes, report);
    compare_best(kRelaying, ", relay 16 us", bytes, report);
  }
  const std::uint64_t bytes = 256 * kMiB;
  const auto x = static_cast<double>(bytes);
  report.add("256 MiB, cepheus", x, time_of_cepheus(bytes) / 1000, "ms", {.paper = 24.4});
  const Schedule rdmc = binomial_pipeline(kHosts, bytes, 256);
  const auto add_rdmc = [&](const HostCost& cost, const std::string& suffix) {
    const BestSetting best = best_at_once(rdmc, rivals_with(cost));
    Schedule one_at_once = rdmc;
    one_at_once.at_once = 1;
    report.add("256 MiB, RDMC, 1 at once" + suffix, x, rivals_with(cost)(one_at_once) / 1000, "ms",
               {.note = "waits for each acknowledgement"});
    report.add("256 MiB, RDMC" + suffix, x, best.us / 1000, "ms",
               {.paper = 35, .note = best.setting});
  };
  add_rdmc(kPlain, "");
  add_rdmc(kRelaying, ", relay 16 us");
}

void compare_gleam(std::uint64_t bytes, std::optional<double> gleam_us,
                   std::optional<double> open_mpi_us, Report& report) {
  report.progress(std::to_string(bytes) + " bytes");
  const auto x = static_cast<double>(bytes);
  const double ours = time_of_cepheus(bytes);
  // The choice of its decision rules for four ranks.
  const bool is_small = bytes < 8 * kKiB;
  const Schedule schedule = is_small ? binomial_tree(kHosts, bytes) : fan_out(kHosts, bytes);
  const double rival = rivals_with(kPlain)(schedule);
  report.add("gleam", x, ours, "us", {.expected = gleam_us});
  report.add("stock Open MPI", x, rival, "us", {.expected = open_mpi_us});
  std::optional<double> paper;
  if (gleam_us && open_mpi_us) paper = *open_mpi_us / *gleam_us;
  report.add("faster", x, rival / ours, "times", {.paper = paper});
  if (!is_small) return;  // no host relays
  const double relayed = rivals_with(kRelaying)(schedule);
  report.add("stock Open MPI, relay 16 us", x, relayed, "us", {.note = kFitted});
  report.add("faster, relay 16 us", x, relayed / ours, "times", {.note = kFitted});
}

void run_gleam_fig9(const ExperimentOptions& options, Report& report) {
  compare_gleam(64, {}, {}, report);
  compare_gleam(4 * kKiB, {}, {}, report);
  compare_gleam(64 * kKiB, 20, 32, report);
  compare_gleam(kMiB, {}, {}, report);
  compare_gleam(32 * kMiB, {}, {}, report);
  if (!options.quick) compare_gleam(1024 * kMiB, 124e3, 248e3, report);
}

}  // namespace four_hosts

const Experiment kCepheusFig8 = {
    "cepheus-fig8",
    "small broadcasts from one host to three: Cepheus beside Open MPI's chain and binomial tree",
    "Cepheus fig. 8",
    "seconds",
    "bytes",
    "over chain",
    "half at 64 bytes: the hosts' software is not known",
    four_hosts::run_fig8};

const Experiment kCepheusFig9 = {
    "cepheus-fig9",
    "large broadcasts from one host to three: Cepheus beside chain, trees, circulant graph and "
    "RDMC",
    "Cepheus fig. 9",
    "seconds",
    "bytes",
    "over chain",
    "a fifth less, then more; RDMC takes 1.01 times, in the paper 1.43",
    four_hosts::run_fig9};

const Experiment kGleamFig9 = {
    "gleam-fig9",
    "broadcasts from one host to three by size: Gleam beside stock Open MPI",
    "Gleam fig. 9",
    "seconds",
    "bytes",
    "faster",
    "less at 64 KiB, more at 1 GiB",
    four_hosts::run_gleam_fig9};

}  // namespace cepheus::sim
