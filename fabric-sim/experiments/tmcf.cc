// TMCF's figures: a multicast at 40 Gb/s beside unicasts that begin one after the other, and beside
// some that come and go. Rates count in the second half of each step. Theory: the multicast gets
// half of its worst link if that alone notifies, and 1/(k+1) of it if all k paths do.
#include <utility>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/congested.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace tmcf {

using namespace std::chrono_literals;

constexpr double kLink = 40;  // Gb/s

// The source alone at a leaf, receivers 1 to 3 and 4 to 6 at two others.
Testbed bed(const CnpFilter& filter, const ExperimentOptions& options) {
  const net::Topology full = net::leaf_spine(3, 1, 3, paper_link(kLink, 1us));
  net::Topology fabric = with_hosts(full, {0, 3, 4, 5, 6, 7, 8});
  fabric.mtu = 1024;
  return congested_testbed(std::move(fabric), filter, options, {}, 200'000);
}

std::vector<FlowPlan> one_after_the_other(wire::Duration step) {
  constexpr std::size_t kUnicasts[6][2] = {{1, 2}, {2, 3}, {3, 1}, {4, 5}, {5, 6}, {6, 4}};
  std::vector<FlowPlan> flows = {{"multicast", 0, {1, 2, 3, 4, 5, 6}}};
  for (int i = 0; i < 6; ++i) {
    flows.push_back({"unicast", kUnicasts[i][0], {kUnicasts[i][1]}, step * (i + 1)});
  }
  return flows;
}

// Rates by the number of congested paths, in the second half of each step.
void measure(const CnpFilter& filter, const ExperimentOptions& options, Report& report) {
  report.progress(filter.name);
  const wire::Duration step = options.quick ? 50ms : 100ms;
  Testbed testbed = bed(filter, options);
  const FlowRates rates =
      measure_flows(testbed, with_groups_of(filter, one_after_the_other(step)), 7 * step, 5ms);
  const std::string name = filter.name;
  const bool is_all = filter.policy == net::CnpPolicy::kAll;
  for (int k = 1; k <= 6; ++k) {
    const wire::Duration from = k * step + step / 2, to = (k + 1) * step;
    const double share = is_all ? kLink / (k + 1) : kLink / 2;
    report.add("multicast, " + name + ", settled", milliseconds(to), rates.mean(0, from, to),
               "Gb/s settled", {.expected = share});
    double sum = 0;
    for (int f = 1; f <= k; ++f) sum += rates.mean(static_cast<std::size_t>(f), from, to);
    report.add("unicasts, " + name + ", settled", milliseconds(to), sum / k, "Gb/s settled",
               {.expected = kLink - share});
  }
  draw_curve(report, "multicast, " + name, rates, 0, step / 10);
  draw_curve(report, "first unicast, " + name, rates, 1, step / 10);
  const Testbed::Totals totals = testbed.totals();
  report.add("marked, " + name, 6, static_cast<double>(totals.marked), "frames");
}

void run_fig3(const ExperimentOptions& options, Report& report) {
  measure(kAllCnps, options, report);
  measure(kWorstPath, options, report);
  measure(kSendersAll, options, report);
}

void run_fig4(const ExperimentOptions& options, Report& report) {
  for (const CnpFilter& filter : {kTmcf, kPapersTmcf, kWorstPath, kSendersTmcf}) {
    measure(filter, options, report);
  }
}

void run_fig6(const ExperimentOptions& options, Report& report) {
  const wire::Duration step = options.quick ? 50ms : 100ms;
  const std::vector<FlowPlan> flows = {{"multicast", 0, {1, 2, 3, 4, 5, 6}},
                                       {"2 to 1", 2, {1}, step},
                                       {"5 to 4", 5, {4}, 3 * step, 5 * step},
                                       {"6 to 4", 6, {4}, 3 * step, 5 * step}};
  struct Phase {
    int from, to;  // steps
    double share;
  };
  constexpr Phase kPhases[] = {{0, 1, 40}, {1, 3, 20}, {3, 5, 40.0 / 3}, {5, 7, 20}};
  std::vector<CnpFilter> filters(kCnpFilters.begin(), kCnpFilters.end());
  filters.push_back(kSendersTmcf);
  for (const CnpFilter& filter : filters) {
    report.progress(filter.name);
    Testbed testbed = bed(filter, options);
    const FlowRates rates = measure_flows(testbed, with_groups_of(filter, flows), 7 * step, 5ms);
    const std::string name = filter.name;
    for (const Phase& phase : kPhases) {
      const bool is_all = filter.policy == net::CnpPolicy::kAll;
      const std::optional<double> share =
          is_all ? std::nullopt : std::optional<double>(phase.share);
      report.add("multicast, " + name + ", settled", milliseconds(phase.to * step),
                 rates.mean(0, (phase.from + phase.to) * step / 2, phase.to * step), "Gb/s settled",
                 {.expected = share});
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      draw_curve(report, flows[f].name + ", " + name, rates, f, step / 10);
    }
  }
}

}  // namespace tmcf

const Experiment kTmcfFig3 = {
    "tmcf-fig3",
    "a multicast that gets every notification, and six unicasts one after the other",
    "TMCF fig. 3",
    "15 s quick, 30 s",
    "ms",
    "multicast, all, settled",
    "falls with every path, less than theory expects",
    tmcf::run_fig3};
const Experiment kTmcfFig4 = {"tmcf-fig4",
                              "a multicast that gets notifications of its worst path only, and six "
                              "unicasts one after the other",
                              "TMCF fig. 4",
                              "25 s quick, 45 s",
                              "ms",
                              "multicast, tmcf, settled",
                              "keeps its half by slots of 25 ms; 16.13 by the paper's 50 us",
                              tmcf::run_fig4};
const Experiment kTmcfFig6 = {"tmcf-fig6",
                              "a multicast with a changing worst path",
                              "TMCF fig. 6",
                              "40 s quick, 80 s",
                              "ms",
                              "multicast, tmcf, settled",
                              "has its share of the worst link by slots of 25 ms",
                              tmcf::run_fig6};

}  // namespace cepheus::sim
