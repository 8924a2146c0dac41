#include "fabric-sim/experiments/loss_sweep.h"

#include <cstdio>

namespace cepheus::sim {
namespace {

double time_with_loss(const LossSweep& sweep, double rate, std::uint64_t seed,
                      const Measured& measured) {
  net::Topology fabric = sweep.fabric;
  lose(fabric, sweep.where, rate);
  TestbedConfig config;
  config.seed = seed;
  config.memory = sweep.bytes;
  Testbed testbed(with_hosts(fabric, sweep.hosts), config);
  return measured(testbed) / 1000;
}

std::string text_of(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", rate);
  return text;
}

}  // namespace

std::vector<double> sweep_loss(const LossSweep& sweep, const std::string& series,
                               const Measured& measured, Report& report,
                               const std::vector<std::pair<double, double>>& paper_goodput) {
  report.say(series + ", no loss");
  const double lossless = time_with_loss(sweep, 0, 1, measured);
  report.add(series + ", lossless", 0, lossless, "ms");
  std::vector<double> medians;
  for (const double rate : sweep.rates) {
    report.say(series + ", loss " + text_of(rate));
    std::vector<double> times, goodputs;
    for (unsigned seed = 1; seed <= sweep.seeds; ++seed) {
      times.push_back(time_with_loss(sweep, rate, seed, measured));
      goodputs.push_back(lossless / times.back());
    }
    std::optional<double> paper;
    for (const auto& [at, value] : paper_goodput) {
      if (at == rate) paper = value;
    }
    report.add(series, rate, times, "ms");
    report.add(series + ", goodput", rate, goodputs, "of lossless", paper);
    medians.push_back(median(times));
  }
  return medians;
}

}  // namespace cepheus::sim
