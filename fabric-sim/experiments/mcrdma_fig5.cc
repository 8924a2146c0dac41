// Two multicasts and a unicast that begin one after the other, in three phases. Rates count in the
// second half of each phase. Expected shares are those of two cases: the worst path alone notifies,
// or all shared paths do. The paper's text gives m1's in the second case.
#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/congested.h"

namespace cepheus::sim {
namespace mcrdma_fig5 {

using namespace std::chrono_literals;

void run(const ExperimentOptions& options, Report& report) {
  const wire::Duration phase = options.quick ? 50ms : 100ms;
  const std::vector<FlowPlan> flows = {
      {"m1", 0, {2, 3}}, {"m2", 2, {3, 4}, phase}, {"u1", 3, {4}, 2 * phase}};
  constexpr double kLink = 100;
  // By flow and phase, if each receives CNPs of every path that it shares.
  constexpr double kAll[3][3] = {{1, 1.0 / 2, 2.0 / 3}, {0, 1.0 / 2, 1.0 / 3}, {0, 0, 2.0 / 3}};
  // The paper's text: m1 falls to a half, then to a third.
  constexpr double kPaperM1[3] = {1, 1.0 / 2, 1.0 / 3};
  constexpr double kFiltered[3][3] = {{1, 0.5, 0.5}, {0, 0.5, 0.5}, {0, 0, 0.5}};
  std::vector<CnpFilter> filters(kCnpFilters.begin(), kCnpFilters.end());
  filters.insert(filters.end(), {kSendersAll, kSendersWorstPath});
  for (const CnpFilter& filter : filters) {
    report.progress(filter.name);
    Testbed testbed = congested_testbed(two_racks_of_four(), filter, options);
    const FlowRates rates = measure_flows(testbed, with_groups_of(filter, flows), 3 * phase, 1ms);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const std::string series = flows[f].name + ", " + filter.name;
      for (int p = static_cast<int>(f); p < 3; ++p) {
        const bool is_all = filter.policy == net::CnpPolicy::kAll;
        const auto& shares = is_all ? kAll : kFiltered;
        Beside beside{.expected = kLink * shares[f][p]};
        if (is_all && f == 0 && p > 0) beside.paper = kLink * kPaperM1[p];
        report.add(series + ", settled", milliseconds((p + 1) * phase),
                   rates.mean(f, p * phase + phase / 2, (p + 1) * phase), "Gb/s settled", beside);
      }
      draw_curve(report, series, rates, f, phase / 10);
    }
  }
}

}  // namespace mcrdma_fig5

const Experiment kMcRdmaFig5 = {"mcrdma-fig5",
                                "two multicasts and a unicast that begin one after the other",
                                "MC-RDMA fig. 5",
                                "10 s quick, 25 s",
                                "ms",
                                "m1, all, settled",
                                "m1 rises: it shares no link with u1",
                                mcrdma_fig5::run};

}  // namespace cepheus::sim
