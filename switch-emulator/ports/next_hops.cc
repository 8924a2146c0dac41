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
#include <array>
#include <cerrno>
#include <cstring>

namespace cepheus::fabric {
namespace {

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

// One request and its answer.
class NextHops::Query {
 public:
  template <typename Body>
  Query(std::uint16_t type, const Body& body) {
    header_.nlmsg_type = type;
    header_.nlmsg_flags = NLM_F_REQUEST;
    append(&body, sizeof body);
  }
  void add(std::uint16_t attribute, const void* value, std::size_t bytes) {
    const rtattr head{static_cast<unsigned short>(RTA_LENGTH(bytes)), attribute};
    append(&head, sizeof head);
    append(value, bytes);
  }
  void add(std::uint16_t attribute, Ipv4 address) {
    const std::uint32_t value = htonl(address.value());
    add(attribute, &value, sizeof value);
  }

  // 0, or the kernel's error. The kernel answers before send() returns.
  int send_request(int fd) {
    header_.nlmsg_len = static_cast<std::uint32_t>(NLMSG_HDRLEN + length_);
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    if (send(fd, bytes_.data(), header_.nlmsg_len, 0) < 0) return errno;
    const ssize_t got = recv(fd, bytes_.data(), bytes_.size(), MSG_DONTWAIT);
    if (got < ssize_t{NLMSG_HDRLEN}) return got < 0 ? errno : EPROTO;
    std::memcpy(&header_, bytes_.data(), sizeof header_);
    length_ = static_cast<std::size_t>(got) - NLMSG_HDRLEN;
    if (header_.nlmsg_type != NLMSG_ERROR) return 0;
    return -read_body<nlmsgerr>().error;
  }

  template <typename Body>
  Body read_body() const {
    Body body{};
    std::memcpy(&body, bytes_.data() + NLMSG_HDRLEN, std::min(sizeof body, length_));
    return body;
  }
  // An attribute's value, in an answer with a body of this size. False if it has none.
  template <typename Body, typename Value>
  bool read(std::uint16_t attribute, Value& value) const {
    std::size_t at = NLMSG_ALIGN(sizeof(Body));
    while (at + sizeof(rtattr) <= length_) {
      rtattr head{};
      std::memcpy(&head, bytes_.data() + NLMSG_HDRLEN + at, sizeof head);
      if (head.rta_len < sizeof head || at + head.rta_len > length_) return false;
      if ((head.rta_type & NLA_TYPE_MASK) == attribute &&
          head.rta_len == RTA_LENGTH(sizeof value)) {
        std::memcpy(&value, bytes_.data() + NLMSG_HDRLEN + at + RTA_LENGTH(0), sizeof value);
        return true;
      }
      at += RTA_ALIGN(head.rta_len);
    }
    return false;
  }

 private:
  void append(const void* data, std::size_t bytes) {
    std::memcpy(bytes_.data() + NLMSG_HDRLEN + length_, data, bytes);
    length_ = NLMSG_ALIGN(length_ + bytes);
  }

  nlmsghdr header_{};
  std::size_t length_ = 0;  // behind the header
  alignas(nlmsghdr) std::array<std::uint8_t, 4096> bytes_{};
};

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
  Query route(RTM_GETROUTE, request);
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
  Query known_as(RTM_GETNEIGH, neighbour);
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
  Query config(RTM_GETNETCONF, request);
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
  Query route(RTM_GETROUTE, request);
  route.add(RTA_DST, destination);
  // A blackhole or a prohibition is an error.
  return route.send_request(netlink_.get()) == 0 &&
         route.read_body<rtmsg>().rtm_type == RTN_UNICAST;
}

}  // namespace cepheus::fabric
