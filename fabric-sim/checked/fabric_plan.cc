#include "fabric-sim/checked/fabric_plan.h"

#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

// So that other parts of the seed's plan stay the same.
constexpr std::uint64_t kFabricStream = 0xFAB'51'2E5;
// Length of a run; its cost grows with the number of hosts.
constexpr std::uint64_t kEventsPerHost = 30'000;

void replace_fabric(Random& random, ScenarioPlan& plan, net::Topology topology, bool hellos) {
  const net::Rules rules = plan.topology.switches.front().config.rules;
  topology.mtu = plan.topology.mtu;
  topology.seed = plan.topology.seed;
  topology.hello = hellos ? kHello : wire::Duration{0};
  for (net::SwitchSpec& spec : topology.switches) {
    configure_switch(random, spec, rules);
    spec.config.orphan_age = kOrphanAge;
    // Longer than the time between two REFRESHs.
    spec.config.age = spec.config.pending_age = 60ms;
  }
  for (net::HostSpec& host : topology.hosts) host.up = host.down = make_link(random, plan.faults);
  for (net::TrunkSpec& trunk : topology.trunks) {
    trunk.ab = trunk.ba = make_link(random, plan.faults);
  }
  topology.assign_link_seeds();
  plan.topology = std::move(topology);
}

enum class Size { kSmall, kMedium, kLarge, kHuge };

Size draw_size(Random& random) {
  const double u = random.fraction();
  return u < 0.0025 ? Size::kHuge
         : u < 0.03 ? Size::kLarge
         : u < 0.2  ? Size::kMedium
                    : Size::kSmall;
}

net::Topology draw_fabric(Random& random, Size size) {
  const bool has_pods = random.chance(0.4);
  const auto leaf_spine = [&](std::uint32_t leaves, std::uint32_t most_leaves, std::uint32_t spines,
                              std::uint32_t hosts, std::uint32_t most_hosts) {
    const std::uint32_t drawn = random.between(leaves, most_leaves);
    const std::uint32_t above = random.between(2, spines);
    return net::leaf_spine(drawn, above, random.between(hosts, most_hosts));
  };
  const auto fat_tree = [&](std::size_t ports, std::uint32_t pods) {
    return net::fat_tree(ports, {}, random.between(pods, static_cast<std::uint32_t>(ports)));
  };
  switch (size) {
    case Size::kHuge:
      return has_pods ? fat_tree(12, 6) : leaf_spine(16, 32, 8, 12, 16);
    case Size::kLarge:
      return has_pods ? fat_tree(8, 4) : leaf_spine(8, 16, 6, 4, 8);
    case Size::kMedium:
      return has_pods ? fat_tree(6, 2) : leaf_spine(4, 8, 4, 2, 6);
    case Size::kSmall:
      break;
  }
  return has_pods ? fat_tree(4, 2) : leaf_spine(2, 5, 3, 2, 3);
}

}  // namespace

void use_small_fabric(Random& random, ScenarioPlan& plan) {
  net::Topology topology =
      random.chance(0.7)
          ? net::leaf_spine(random.between(2, 4), random.between(2, 3), random.between(1, 2))
          : net::fat_tree(4, {}, 2);
  replace_fabric(random, plan, std::move(topology), true);
}

void use_fabric_of_any_size(ScenarioPlan& plan, bool hellos) {
  Random random(plan.seed ^ kFabricStream);
  const Size size = draw_size(random);
  net::Topology topology = draw_fabric(random, size);
  const bool some_send_hellos = size != Size::kHuge && random.chance(0.3);
  replace_fabric(random, plan, std::move(topology), hellos || some_send_hellos);
  plan.event_budget += kEventsPerHost * plan.topology.hosts.size();
}

void add_successors(Random& random, ScenarioPlan& plan, wire::Duration at) {
  const std::size_t groups = plan.groups.size();
  for (std::size_t g = 0; g < groups; ++g) {
    GroupPlan again = plan.groups[g];
    again.id = wire::McstId(again.id.value() + 2);
    again.starts = at + kKnown + random.between(wire::Duration{0}, wire::Duration{5ms});
    plan.groups.push_back(std::move(again));
  }
  plan.has_successors = true;
}

}  // namespace cepheus::sim
