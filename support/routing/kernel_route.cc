// A netlink socket and one request for each call (rtnetlink(7)); nothing is kept. find_route()
// refuses local, broadcast and multicast destinations. A neighbour entry that can't be read counts
// as missing.
#include "support/routing/kernel_route.h"

#include <net/if.h>
#include <sys/socket.h>

#include "support/routing/netlink_query.h"
#include "wire/unique_fd.h"

namespace cepheus::routing {
namespace {

wire::UniqueFd open_netlink() {
  return wire::UniqueFd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
}

struct State {
  std::uint16_t bit;
  const char* name;
};
constexpr State kStates[] = {{NUD_INCOMPLETE, "INCOMPLETE"}, {NUD_REACHABLE, "REACHABLE"},
                             {NUD_STALE, "STALE"},           {NUD_DELAY, "DELAY"},
                             {NUD_PROBE, "PROBE"},           {NUD_FAILED, "FAILED"},
                             {NUD_NOARP, "NOARP"},           {NUD_PERMANENT, "PERMANENT"}};

}  // namespace

wire::Result<KernelRoute> find_route(wire::Ipv4 to, wire::Ipv4 from) {
  const wire::UniqueFd netlink = open_netlink();
  if (!netlink.is_open()) return wire::call_failed("can't ask the kernel about routes");
  rtmsg request{};
  request.rtm_family = AF_INET;
  request.rtm_dst_len = 32;
  if (!from.is_unset()) request.rtm_src_len = 32;
  NetlinkQuery query(RTM_GETROUTE, request);
  query.add(RTA_DST, to);
  if (!from.is_unset()) query.add(RTA_SRC, from);
  if (const int error = query.send_request(netlink.get())) {
    return wire::unavailable(std::strerror(error));
  }
  KernelRoute route;
  if (query.read_body<rtmsg>().rtm_type != RTN_UNICAST ||
      !query.read<rtmsg>(RTA_OIF, route.interface)) {
    return wire::unavailable("the address is this machine's own, or no unicast address");
  }
  std::uint32_t address = 0;
  if (query.read<rtmsg>(RTA_GATEWAY, address)) route.gateway = wire::Ipv4(ntohl(address));
  if (query.read<rtmsg>(RTA_PREFSRC, address)) route.source = wire::Ipv4(ntohl(address));
  return route;
}

std::string interface_name(unsigned interface) {
  char name[IF_NAMESIZE];
  return if_indextoname(interface, name) != nullptr ? name
                                                    : "interface " + std::to_string(interface);
}

std::string neighbour_state(unsigned interface, wire::Ipv4 hop) {
  const wire::UniqueFd netlink = open_netlink();
  ndmsg request{};
  request.ndm_family = AF_INET;
  request.ndm_ifindex = static_cast<int>(interface);
  NetlinkQuery query(RTM_GETNEIGH, request);
  query.add(NDA_DST, hop);
  if (!netlink.is_open() || query.send_request(netlink.get()) != 0) return "missing";
  const std::uint16_t state = query.read_body<ndmsg>().ndm_state;
  for (const State& each : kStates) {
    if ((state & each.bit) != 0) return each.name;
  }
  return "NONE";
}

}  // namespace cepheus::routing
