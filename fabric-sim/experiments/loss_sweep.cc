// Each rate and seed is a run on a fresh testbed. The runs without loss come first, one for each
// seed, since each lossy run is compared with that of its own seed. A goodput is the quotient of
// both times. Loss is set once more for each run, on a copy of the fabric.
#include "fabric-sim/experiments/loss_sweep.h"

#include <cstdio>

namespace cepheus::sim {
namespace {

struct Run {
  double ms = 0, timeouts = 0;
  double goodput = 0;  // as a share of the same seed's without loss
};

Run run_with_loss(const LossSweep& sweep, double rate, std::uint64_t seed,
                  const Measured& measured) {
  net::Topology fabric = sweep.fabric;
  lose(fabric, sweep.where, rate);
  Testbed testbed(with_hosts(fabric, sweep.hosts),
                  {.seed = seed, .ack_every = sweep.ack_every, .memory = sweep.bytes});
  Run run;
  run.ms = measured(testbed) / 1000;
  run.timeouts = static_cast<double>(testbed.totals().timeouts);
  return run;
}

std::string text_of(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", rate);
  return text;
}

}  // namespace

LossMedians sweep_loss(const LossSweep& sweep, const std::string& series, const Measured& measured,
                       Report& report, const std::vector<std::pair<double, double>>& paper_goodput,
                       const std::string& note) {
  report.progress(series + ", no loss");
  std::vector<double> lossless;
  for (unsigned seed = 1; seed <= sweep.seeds; ++seed) {
    lossless.push_back(run_with_loss(sweep, 0, seed, measured).ms);
  }
  report.add(series + ", lossless", 0, lossless, "ms", {.note = note});
  LossMedians medians;
  for (const double rate : sweep.rates) {
    report.progress(series + ", loss " + text_of(rate));
    std::vector<Run> runs;
    for (unsigned seed = 1; seed <= sweep.seeds; ++seed) {
      runs.push_back(run_with_loss(sweep, rate, seed, measured));
      runs.back().goodput = lossless[seed - 1] / runs.back().ms;
    }
    std::optional<double> paper;
    for (const auto& [at, value] : paper_goodput) {
      if (at == rate) paper = value;
    }
    const std::vector<double> times = each(runs, &Run::ms);
    const std::vector<double> goodput = each(runs, &Run::goodput);
    report.add(series, rate, times, "ms", {.note = note});
    report.add(series + ", goodput", rate, goodput, "of lossless", {.paper = paper});
    report.add(series + ", time-outs", rate, each(runs, &Run::timeouts), "time-outs");
    medians.ms.push_back(median(times));
    medians.goodput.push_back(median(goodput));
  }
  return medians;
}

}  // namespace cepheus::sim
