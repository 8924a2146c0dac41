// find() is two questions to the kernel: RTM_GETROUTE for the interface and the gateway,
// RTM_GETNEIGH for the MAC address. A route by another interface is an error that names the remedy.
// forwards() reads the interface's forwarding setting first, then looks up kSampledAddresses of the
// block. Sources: rtnetlink(7), RFC 1122.
#include "switch-emulator/ports/next_hops.h"

#include <arpa/inet.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "support/routing/netlink_query.h"

namespace cepheus::fabric {
namespace {

using routing::NetlinkQuery;
using wire::Ipv4;

constexpr std::uint64_t kSampledAddresses = 16;  // of a block, evenly spaced
constexpr std::uint16_t kDiscardPort = 9;        // RFC 863: discards any datagram
constexpr std::uint16_t kUsable =
    NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;
constexpr std::uint16_t kFresh = NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP;

tl::unexpected<wire::Error> cant_look_at(const std::string& interface, int error) {
  return wire::unavailable(
      error == ENODEV
          ? "there is no interface " + interface + "; ip link lists the interfaces"
          : "can't ask the kernel about interface " + interface + ": " + std::strerror(error));
}

}  // namespace

wire::Result<std::unique_ptr<NextHops>> NextHops::open(const std::string& interface) {
  std::unique_ptr<NextHops> hops(new NextHops(interface));
  hops->netlink_.reset(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!hops->netlink_.is_open()) return cant_look_at(interface, errno);
  hops->datagrams_.reset(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!hops->datagrams_.is_open()) return cant_look_at(interface, errno);
  hops->index_ = hops->index_now();
  if (hops->index_ == 0) return cant_look_at(interface, errno);
  if (!hops->refresh()) {
    return wire::unavailable("interface " + interface +
                             " is not one of Ethernet; name one that has a MAC address");
  }
  return hops;
}

// Uses an open socket, because if_nametoindex() opens one, and reports a missing interface if
// descriptors have run out.
unsigned NextHops::index_now() const {
  ifreq request{};
  std::strncpy(request.ifr_name, interface_.c_str(), IFNAMSIZ - 1);
  const bool is_there = ioctl(datagrams_.get(), SIOCGIFINDEX, &request) == 0;
  return is_there ? static_cast<unsigned>(request.ifr_ifindex) : 0;
}

bool NextHops::refresh() {
  ifreq request{};
  std::strncpy(request.ifr_name, interface_.c_str(), IFNAMSIZ - 1);
  if (index_now() != index_ || ioctl(datagrams_.get(), SIOCGIFHWADDR, &request) != 0 ||
      request.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
    return false;
  }
  std::memcpy(own_mac_.octets.data(), request.ifr_hwaddr.sa_data, own_mac_.octets.size());
  return true;
}

wire::Result<NextHops::Hop> NextHops::find(Ipv4 host) {
  rtmsg request{};
  request.rtm_family = AF_INET;
  request.rtm_dst_len = 32;
  NetlinkQuery route(RTM_GETROUTE, request);
  route.add(RTA_DST, host);
  const int error = route.send_request(netlink_.get());
  std::uint32_t index = 0, gateway = 0;
  const bool known = error == 0 && route.read_body<rtmsg>().rtm_type == RTN_UNICAST &&
                     route.read<rtmsg>(RTA_OIF, index);
  if (!known || index != index_) {
    char name[IF_NAMESIZE] = "";
    const bool elsewhere = known && if_indextoname(index, name) != nullptr;
    return wire::unavailable(
        "packets to " + host.to_string() + " do not leave by interface " + interface_ +
        (elsewhere
             ? ", but by " + std::string(name)
             : ": " + std::string(error != 0 ? std::strerror(error) : "it is this machine's own")) +
        "; give " + interface_ +
        " an address on the hosts' network, or add a route: ip "
        "route add " +
        host.to_string() + " via GATEWAY dev " + interface_);
  }
  Hop hop;
  hop.address = host;
  hop.is_gateway = route.read<rtmsg>(RTA_GATEWAY, gateway);
  if (hop.is_gateway) hop.address = Ipv4(ntohl(gateway));

  ndmsg neighbour{};
  neighbour.ndm_family = AF_INET;
  neighbour.ndm_ifindex = static_cast<int>(index_);
  NetlinkQuery known_as(RTM_GETNEIGH, neighbour);
  known_as.add(NDA_DST, hop.address);
  wire::Mac mac;
  if (known_as.send_request(netlink_.get()) == 0) {
    const std::uint16_t state = known_as.read_body<ndmsg>().ndm_state;
    if ((state & kUsable) != 0 && known_as.read<ndmsg>(NDA_LLADDR, mac.octets)) hop.mac = mac;
    hop.is_fresh = hop.mac && (state & kFresh) != 0;
  }
  return hop;
}

void NextHops::request_hop(Ipv4 hop) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kDiscardPort);
  to.sin_addr.s_addr = htonl(hop.value());
  // The neighbour table shows the result.
  sendto(datagrams_.get(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

bool NextHops::is_forwarding() {
  netconfmsg request{};
  request.ncm_family = AF_INET;
  NetlinkQuery config(RTM_GETNETCONF, request);
  config.add(NETCONFA_IFINDEX, &index_, sizeof index_);
  std::int32_t forwarding = 0;
  return config.send_request(netlink_.get()) == 0 &&
         config.read<netconfmsg>(NETCONFA_FORWARDING, forwarding) && forwarding != 0;
}

bool NextHops::forwards(const wire::Ipv4Prefix& block) {
  if (!is_forwarding()) return false;
  const std::uint64_t step = std::max<std::uint64_t>(block.size() / kSampledAddresses, 1);
  for (std::uint64_t offset = 0; offset < block.size(); offset += step) {
    if (has_route(Ipv4(block.base.value() + static_cast<std::uint32_t>(offset)))) return true;
  }
  return false;
}

bool NextHops::has_route(Ipv4 destination) {
  rtmsg request{};
  request.rtm_family = AF_INET;
  request.rtm_dst_len = 32;
  NetlinkQuery route(RTM_GETROUTE, request);
  route.add(RTA_DST, destination);
  // A blackhole or a prohibition is an error.
  return route.send_request(netlink_.get()) == 0 &&
         route.read_body<rtmsg>().rtm_type == RTN_UNICAST;
}

}  // namespace cepheus::fabric
