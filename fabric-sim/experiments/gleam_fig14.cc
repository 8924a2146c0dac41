// HPL's broadcasts on grids of n times n nodes, consecutive or at random places. Large grids are
// simulated with a part of the data and half of it, and extended along the line through both times.
// The volume is chosen so that Gleam's time on the smallest grid is near the paper's: only
// quotients can be compared.
#include "fabric-sim/experiments/gleam_fig14.h"

#include <algorithm>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/gleam_hpl.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

constexpr std::size_t kPorts = 64;
constexpr std::size_t kHostsPerPod = 1024;
constexpr double kGigabits = 200;
// The bytes of half of the paper's 5.17 ms at 200 Gb/s.
constexpr std::uint64_t kBytes = 64'600'000;
constexpr double kPaperGleam = 5.17;  // ms, at 8 x 8 and at 128 x 128

// Time of each method in milliseconds.
struct Times {
  double gleam = 0, from_one = 0, rival = 0;
  double saved = 0, saved_from_one = 0;  // percent of the rival's
};

// Extrapolates two times, of the simulated bytes and of half of them, along a line to the whole.
double extended(double at_simulated, double at_half, const GridCase& c) {
  const double times = static_cast<double>(c.whole) / static_cast<double>(c.simulated);
  return at_simulated + 2 * (times - 1) * (at_simulated - at_half);
}

std::string note_of(const GridCase& c) {
  if (c.simulated == c.whole) return "";
  const std::uint64_t part = c.whole / c.simulated;
  return "extrapolated from 1/" + std::to_string(part) + " and 1/" + std::to_string(2 * part);
}

Times times_of(const net::Topology& fabric, std::size_t n, std::uint64_t bytes, unsigned seed) {
  const TestbedConfig config{.seed = seed, .max_qps = 1024, .memory = bytes};
  const Grid grid = grid_of(n);
  const auto ms = [](wire::Duration time) { return microseconds(time) / 1000; };
  Times times;
  {
    Testbed testbed(fabric, config);
    const HplTimes found = time_of_gleam(testbed, grid.rows, grid.columns, bytes);
    times.gleam = ms(found.panel + found.swap);
    times.from_one = ms(found.panel);
  }
  {
    Testbed testbed(fabric, config);
    times.from_one += ms(time_of_swap_from_one(testbed, grid.columns, bytes));
  }
  Testbed testbed(fabric, config);
  const HplTimes found = time_of_ring_and_long(testbed, grid.rows, grid.columns, bytes);
  times.rival = ms(found.panel + found.swap);
  return times;
}

void run(Placement placement, const ExperimentOptions& options, Report& report) {
  const bool is_random = placement == Placement::kRandom;
  const auto measure = [&](const GridCase& c) { measure_grid(c, placement, report); };
  measure({8, kBytes, kBytes, options.seeds_or(is_random ? 1 : 3, 5), kPaperGleam, 13.7});
  const unsigned seeds = options.seeds_or(1, 3);
  measure({16, kBytes, kBytes / 4, seeds});
  if (options.quick) return;
  measure({32, kBytes, kBytes / 8, seeds});
  measure({64, kBytes, kBytes / 8, options.seeds_or(1, 1)});
  const std::uint64_t part = kBytes / (is_random ? 16 : 8);
  measure({128, kBytes, part, options.seeds_or(1, 1), kPaperGleam, 19.4});
}

void run_consecutive(const ExperimentOptions& options, Report& report) {
  run(Placement::kConsecutive, options, report);
}

void run_random(const ExperimentOptions& options, Report& report) {
  run(Placement::kRandom, options, report);
}

}  // namespace

void measure_grid(const GridCase& c, Placement placement, Report& report) {
  const bool is_random = placement == Placement::kRandom;
  const std::size_t nodes = c.n * c.n;
  const std::size_t pods = is_random ? 16 : std::max<std::size_t>(2, nodes / kHostsPerPod);
  const net::Topology fabric = net::fat_tree(kPorts, paper_link(kGigabits), pods);
  std::vector<Times> runs;
  for (unsigned seed = 1; seed <= c.seeds; ++seed) {
    report.progress(std::to_string(c.n) + " x " + std::to_string(c.n) + ", seed " +
                    std::to_string(seed));
    const auto hosts =
        is_random ? random_hosts(nodes, fabric.hosts.size(), seed) : first_hosts(nodes);
    const net::Topology used = with_hosts(fabric, hosts);
    Times times = times_of(used, c.n, c.simulated, seed);
    if (c.simulated < c.whole) {
      const Times half = times_of(used, c.n, c.simulated / 2, seed);
      times = {extended(times.gleam, half.gleam, c), extended(times.from_one, half.from_one, c),
               extended(times.rival, half.rival, c)};
    }
    times.saved = 100 * (1 - times.gleam / times.rival);
    times.saved_from_one = 100 * (1 - times.from_one / times.rival);
    runs.push_back(times);
  }
  const auto n = static_cast<double>(c.n);
  const std::string note = note_of(c);
  const auto add = [&](const char* series, double Times::*figure, const char* unit,
                       std::optional<double> paper) {
    report.add(series, n, each(runs, figure), unit, {.paper = paper, .note = note});
  };
  add("gleam", &Times::gleam, "ms", c.paper_gleam);
  add("gleam, a column's data at one", &Times::from_one, "ms", c.paper_gleam);
  add("ring and long", &Times::rival, "ms", c.paper_rival);
  std::optional<double> paper_saved;
  if (c.paper_gleam && c.paper_rival) paper_saved = 100 * (1 - *c.paper_gleam / *c.paper_rival);
  add("saved", &Times::saved, "%", paper_saved);
  add("saved, a column's data at one", &Times::saved_from_one, "%", paper_saved);
}

const Experiment kGleamFig14 = {
    "gleam-fig14",
    "HPL's panel broadcast and row swap on n x n nodes: Gleam beside increasing ring and long",
    "Gleam fig. 14",
    "30 s quick, 30 min",
    "n",
    "saved",
    "less, then more; the volume is chosen for the paper's 5.17 ms",
    run_consecutive};

const Experiment kGleamFig14Random = {"gleam-fig14-random",
                                      "the same with the nodes at random places",
                                      "Gleam fig. 14",
                                      "1 min quick, an hour",
                                      "n",
                                      "saved",
                                      "less: trees of several groups meet on links",
                                      run_random};

}  // namespace cepheus::sim
