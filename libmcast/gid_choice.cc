// Routes are looked up to the first address behind the base of the groups' block: once freely, and
// once from each GID's address. The first fitting GID is taken, unless a later one is the kernel's
// preferred source. Nothing is kept or changed. Each error is one line with the command that mends
// it.
#include "libmcast/gid_choice.h"

#include "support/routing/kernel_route.h"

namespace cepheus::mcast {
using routing::find_route;
using routing::interface_name;

Expected<Gid> choose_by_route(std::span<const Gid> gids, const wire::Ipv4Prefix& groups) {
  const wire::Ipv4 group(groups.base.value() + 1);
  const auto preferred = find_route(group);
  const Gid* chosen = nullptr;
  std::string elsewhere;
  for (const Gid& gid : gids) {
    if (gid.interface == 0) return gid;
    const auto route = find_route(group, gid.address);
    if (route && route->interface == gid.interface) {
      const bool is_preferred = preferred && preferred->source == gid.address;
      if (chosen == nullptr || is_preferred) chosen = &gid;
      continue;
    }
    elsewhere += (elsewhere.empty() ? "" : ", ") + gid.address.to_string() + " of " +
                 interface_name(gid.interface) + ": " +
                 (route ? "by " + interface_name(route->interface) : route.error().text);
  }
  if (chosen != nullptr) return *chosen;
  if (gids.empty()) {
    return fail(MCAST_ERR_NO_DEVICE,
                "no RoCE v2 address over IPv4: give its network interface an IPv4 address");
  }
  return fail(MCAST_ERR_NO_DEVICE, "packets to groups do not leave by its interface (" + elsewhere +
                                       "): ip route add " + groups.to_string() +
                                       " via SWITCH dev " + interface_name(gids[0].interface));
}

std::string describe_way(const Gid& gid, wire::Ipv4 group) {
  if (gid.interface == 0) return "the fabric's switch did not answer";
  const std::string own = interface_name(gid.interface);
  const auto route = find_route(group, gid.address);
  if (!route) {
    return "there is no route to " + group.to_string() + " from " + gid.address.to_string() + " (" +
           route.error().text + "): ip route add " + group.to_string() + " via SWITCH dev " + own;
  }
  if (route->interface != gid.interface) {
    return "the route to " + group.to_string() + " leaves by " + interface_name(route->interface) +
           ", and the queue pair by " + own +
           ": change the route, or name the device of the other interface";
  }
  const wire::Ipv4 hop = route->gateway.value_or(group);
  return "the route to " + group.to_string() + " leaves by " + own + " to " + hop.to_string() +
         ", whose neighbour entry is " + routing::neighbour_state(gid.interface, hop) +
         ": check that cepheus-switch runs there, and the network between";
}

}  // namespace cepheus::mcast
