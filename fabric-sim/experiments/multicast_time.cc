#include "fabric-sim/experiments/multicast_time.h"

#include <stdexcept>

namespace cepheus::sim {

MulticastTime time_of_multicast(Testbed& testbed, const std::vector<std::size_t>& hosts,
                                std::uint64_t bytes, wire::McstId id) {
  MulticastGroup group(testbed.simulator(), testbed.network(), id, hosts, testbed.memory());
  if (!group.set_up()) throw std::runtime_error("the group is not set up");
  const Instant begin = testbed.simulator().now();
  group.send(0, static_cast<std::uint32_t>(bytes));
  testbed.run_until([&] { return group.is_done(); });
  return {group.received_at() - begin, group.completed_at() - begin};
}

}  // namespace cepheus::sim
