// Rules in the switches at the top of racks, for all possible groups of three replicas, counted
// beside V-B's closed forms. Racks that are alike must have equal counts, or the run throws. The
// paper's formula allows a replica at the sender's own host, so the counts without that are
// separate.
#include <stdexcept>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/replication_rules.h"

namespace cepheus::sim {
namespace mcrdma_rules {

constexpr std::size_t kHosts = 16;  // of a rack
constexpr std::size_t kManyRacks = 20, kGroupsPerHost = 100;

// V-B's closed forms.
double of_one_rack(std::size_t racks) { return static_cast<double>(1920 * racks); }
double of_two_racks(std::size_t racks) { return static_cast<double>(2048 * racks * (racks - 1)); }

void run(const ExperimentOptions& options, Report& report) {
  const std::size_t most = options.quick ? 3 : 5;
  for (std::size_t n = 1; n <= most; ++n) {
    report.progress(std::to_string(n) + " racks");
    const Racks racks(n, kHosts);
    const RackRules rules = racks.count(0, true), apart = racks.count(0, false);
    for (std::size_t rack = 1; rack < n; ++rack) {
      if (racks.count(rack, true) != rules) throw std::logic_error("racks' rules differ");
    }
    const auto x = static_cast<double>(n);
    const auto add = [&](const char* series, std::uint64_t value, std::optional<double> expected) {
      report.add(series, x, static_cast<double>(value), "rules", {.expected = expected});
    };
    add("two replicas in one rack", rules.one_rack, of_one_rack(n));
    add("two replicas in two racks", rules.two_racks, of_two_racks(n));
    add("rules of a switch", rules.sum(), of_one_rack(n) + of_two_racks(n));
    add("... no replica at the sender's host", apart.sum(), std::nullopt);
  }
  report.progress("20 racks");
  const Racks racks(kManyRacks, kHosts);
  const RackRules rules = racks.count(0, true, kGroupsPerHost);
  const auto x = static_cast<double>(kManyRacks);
  report.add("at most 100 groups a host, one rack", x, static_cast<double>(rules.one_rack), "rules",
             {.expected = of_one_rack(kManyRacks)});
  report.add("at most 100 groups a host, two racks", x, static_cast<double>(rules.two_racks),
             "rules", {.expected = static_cast<double>(kHosts * kGroupsPerHost)});
  report.add("at most 100 groups a host", x, static_cast<double>(rules.sum()), "rules",
             {.expected = of_one_rack(kManyRacks) + kHosts * kGroupsPerHost});
}

}  // namespace mcrdma_rules

const Experiment kMcRdmaRules = {
    "mcrdma-rules",
    "rules in the switch of a rack of 16 hosts, for all groups of three replicas",
    "MC-RDMA V-B",
    "seconds",
    "racks",
    "rules of a switch",
    "the paper's formula exactly",
    mcrdma_rules::run};

}  // namespace cepheus::sim
