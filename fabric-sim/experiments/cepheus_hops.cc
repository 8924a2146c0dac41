// The longest way of a message from one to four, in links. Links take 1 us and nothing else takes
// time, so the time in microseconds is the number of links.
#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/rivals.h"
#include "fabric-sim/experiments/unicast_run.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace cepheus_hops {

// The source, one receiver at its switch, one in its pod, two at one switch of another pod.
const std::vector<std::size_t> kHosts = {0, 1, 2, 4, 5};
constexpr std::uint64_t kBytes = 64;

Testbed bed() {
  net::LinkConfig link;
  link.delay = std::chrono::microseconds(1);
  return {net::fat_tree(4, link), {}};
}

double links(const Schedule& schedule) {
  Testbed testbed = bed();
  return microseconds(time_of(testbed, schedule, kHosts));
}

void run(const ExperimentOptions&, Report& report) {
  const std::size_t n = kHosts.size();
  Testbed testbed = bed();
  report.add("cepheus", 4, microseconds(time_of_multicast(testbed, kHosts, kBytes).received),
             "links", {.paper = 6});
  report.add("n unicasts", 4, links(fan_out(n, kBytes)), "links", {.paper = 6});
  report.add("binomial tree", 4, links(binomial_tree(n, kBytes, Tree::kNearFirst)), "links",
             {.paper = 8});
  report.add("chain", 4, links(chain(n, kBytes, 1)), "links", {.paper = 14});
}

}  // namespace cepheus_hops

const Experiment kCepheusHops = {
    "cepheus-hops",    "links on the longest way of a message from one to four",
    "Cepheus fig. 1d", "nothing",
    "receivers",       "cepheus",
    "equal",           cepheus_hops::run};

}  // namespace cepheus::sim
