// HPL's broadcasts if switches in the middle of the fabric lose packets. Fig. 15: a panel and a
// swap of 64 or 512 nodes, beside ring and long. Fig. 16: goodput of a broadcast to 511, also with
// an acknowledgement for each packet. Fig. 15's rates begin at 1e-5, below which hardly a run loses
// a packet.
#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/gleam_hpl.h"
#include "fabric-sim/experiments/loss_sweep.h"
#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/rivals.h"
#include "fabric-sim/experiments/unicast_run.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace gleam_loss {

constexpr std::size_t kPorts = 64, kPods = 16;
constexpr double kGigabits = 200;
constexpr std::uint64_t kBytes = 16 << 20;

LossSweep sweep_of(std::size_t members, const ExperimentOptions& options, unsigned seeds,
                   std::vector<double> rates) {
  LossSweep sweep;
  sweep.fabric = net::fat_tree(kPorts, paper_link(kGigabits), kPods);
  sweep.where = LossAt::kMiddleSwitches;
  sweep.hosts = random_hosts(members, sweep.fabric.hosts.size(), 1);
  sweep.bytes = kBytes;
  sweep.rates = options.loss > 0 ? std::vector{options.loss} : std::move(rates);
  sweep.seeds = seeds;
  return sweep;
}

Schedule best_unicasts(std::size_t members) {
  return circulant_in_fat_tree(members, kBytes, paper_link(kGigabits).rate);
}

double sum(const HplTimes& times) { return microseconds(times.panel + times.swap); }

void measure_job(std::size_t members, const std::string& paper_saved,
                 const ExperimentOptions& options, Report& report) {
  if (options.members != 0 && options.members != members) return;
  // The paper begins at 1e-8. Below 1e-5 hardly a run loses a packet.
  const LossSweep sweep = sweep_of(members, options, options.seeds_or(1, 3), {1e-5, 1e-4, 1e-3});
  const HostGroups group{first_hosts(members)};
  const std::string n = ", " + std::to_string(members);
  const LossMedians gleam = sweep_loss(
      sweep, "gleam" + n, [&](Testbed& t) { return sum(time_of_gleam(t, group, group, kBytes)); },
      report);
  // Its panel by this schedule, and the swap by long.
  const auto times_of_rival = [&](const std::string& panel, const Schedule& schedule,
                                  const std::string& note) {
    return sweep_loss(
        sweep, panel + " and long" + n,
        [&](Testbed& t) { return sum(time_of_unicasts(t, group, group, schedule)); }, report, {},
        note);
  };
  const auto compare = [&](const std::string& series, const LossMedians& rival,
                           const std::string& note) {
    for (std::size_t i = 0; i < sweep.rates.size(); ++i) {
      report.add(series, sweep.rates[i], 100 * (1 - gleam.ms[i] / rival.ms[i]), "%",
                 {.note = note});
    }
  };
  const LossMedians ring = times_of_rival("ring", chain(members, kBytes, members), "");
  compare("saved" + n, ring, "paper: " + paper_saved);
  if (members < 512) {
    const Schedule circulant = best_unicasts(members);
    const LossMedians best = times_of_rival("circulant graph", circulant, setting_of(circulant));
    return compare("saved beside circulant graph and long" + n, best, "");
  }
  report.add("ring and long over gleam" + n, sweep.rates.back(), ring.ms.back() / gleam.ms.back(),
             "times", {.paper = 7});
}

void run_fig15(const ExperimentOptions& options, Report& report) {
  measure_job(64, "46..52", options, report);
  if (!options.quick || options.members != 0) measure_job(512, "86..94", options, report);
}

void run_fig16(const ExperimentOptions& options, Report& report) {
  const std::size_t members = 512;
  const auto ranks = first_hosts(members);
  // The rates at which the paper gives its goodput.
  const LossSweep sweep = sweep_of(members, options, options.seeds_or(3, 3), {1e-4, 1e-3});
  const auto measured = [&](Testbed& t) {
    return microseconds(time_of_multicast(t, ranks, kBytes).received);
  };
  const std::vector<std::pair<double, double>> paper = {{1e-4, 0.9}, {1e-3, 0.42}};
  const LossMedians gleam = sweep_loss(sweep, "gleam", measured, report, paper);
  LossSweep each_packet = sweep;
  each_packet.ack_every = 1;
  each_packet.seeds = options.seeds_or(1, 1);
  if (options.quick) each_packet.rates = {sweep.rates.front()};
  sweep_loss(each_packet, "gleam, ACK a packet", measured, report, paper);
  if (options.quick) return;
  LossSweep unicasts = sweep;  // they take far longer to simulate
  unicasts.seeds = options.seeds_or(1, 1);
  const auto compare = [&](const std::string& name, const Schedule& schedule,
                           const std::string& note) {
    const LossMedians rival = sweep_loss(
        unicasts, name, [&](Testbed& t) { return microseconds(time_of(t, schedule, ranks)); },
        report, {}, note);
    for (std::size_t i = 0; i < sweep.rates.size(); ++i) {
      report.add(name + " over gleam", sweep.rates[i], rival.ms[i] / gleam.ms[i], "times");
      report.add(name + " over gleam, goodput", sweep.rates[i], rival.goodput[i] / gleam.goodput[i],
                 "times", {.note = "paper: above 1"});
    }
  };
  compare("increasing ring", chain(members, kBytes, members), "");
  const Schedule circulant = best_unicasts(members);
  compare("circulant graph", circulant, setting_of(circulant));
}

}  // namespace gleam_loss

const Experiment kGleamFig15 = {
    "gleam-fig15",
    "a panel broadcast and a row swap where switches lose packets: Gleam beside ring and long",
    "Gleam fig. 15",
    "20 s quick, 20 min",
    "loss at each switch",
    "saved, 64",
    "as the paper's at all rates; with 512 less",
    gleam_loss::run_fig15};

const Experiment kGleamFig16 = {"gleam-fig16",
                                "goodput of a broadcast to 511 over switches that lose packets",
                                "Gleam fig. 16",
                                "1 min quick, 6 min",
                                "loss at each switch",
                                "gleam, goodput",
                                "equal at 1e-4 within the spread; more at 1e-3",
                                gleam_loss::run_fig16};

}  // namespace cepheus::sim
