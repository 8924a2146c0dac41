// One long Allreduce by the switches at rising rates of loss, beside Rabenseifner's. All copies that
// leave a switch may be lost: partial results, results, and the rival's messages.
#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/exchange_run.h"
#include "fabric-sim/experiments/loss_sweep.h"
#include "fabric-sim/experiments/reduction_team.h"

namespace cepheus::sim {
namespace allreduce_loss {

constexpr std::size_t kHosts = 64;

void run(const ExperimentOptions& options, Report& report) {
  LossSweep sweep;
  sweep.fabric = part_of_fat_tree(kHosts, paper_link());
  sweep.hosts = first_hosts(kHosts);
  sweep.bytes = (options.quick ? 2 : 16) << 20;
  sweep.rates = {1e-4, 1e-3};
  if (!options.quick) sweep.rates = {1e-6, 1e-5, 1e-4, 1e-3};
  if (options.loss > 0) sweep.rates = {options.loss};
  sweep.seeds = options.seeds_or(1, 3);
  const LossMedians ours = sweep_loss(
      sweep, "cepheus",
      [&](Testbed& testbed) {
        ReductionTeam team(testbed, sweep.hosts, ReductionTeam::kOrdered);
        team.gather(0);
        return microseconds(team.sum(sweep.bytes));
      },
      report);
  const Exchanges exchanges = rabenseifner(kHosts, sweep.bytes);
  const LossMedians rival = sweep_loss(
      sweep, "Rabenseifner",
      [&](Testbed& testbed) { return microseconds(time_of(testbed, exchanges, sweep.hosts)); },
      report);
  for (std::size_t i = 0; i < sweep.rates.size(); ++i) {
    report.add("Rabenseifner over cepheus", sweep.rates[i], rival.ms[i] / ours.ms[i], "times");
  }
}

}  // namespace allreduce_loss

const Experiment kAllreduceLoss = {
    "allreduce-loss",
    "one Allreduce of 16 MiB among 64 hosts at rising rates of loss, beside Rabenseifner's",
    "our own",
    "3 s quick, 1 min",
    "loss",
    "cepheus, goodput",
    "as without loss to 1e-5; at 1e-3 an eighth slower, where unicasts lose a fifth",
    allreduce_loss::run,
};

}  // namespace cepheus::sim
