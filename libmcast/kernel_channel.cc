// The socket is bound to the device's address and any port, which CONFIRM and INSTALL name. A
// filter in the kernel keeps datagrams out that did not come from the MRP port, so strangers can't
// fill the socket's buffer. Datagrams have the groups' DSCP and priority where the kernel allows.
#include "libmcast/kernel_channel.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "wire/ecn.h"

namespace cepheus::mcast {
namespace {

sockaddr_in socket_address(wire::Ipv4 address, std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(address.value());
  a.sin_port = htons(port);
  return a;
}

// Datagrams of other source ports take no place in the socket's buffer: no switch has seen them, and
// any host may send them.
int keep_others_out(int fd, std::uint16_t port) {
  constexpr std::uint32_t kSourcePort = 0, kAll = 0xFFFF;  // the UDP header's offset; bytes to keep
  std::array<sock_filter, 4> code{{BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kSourcePort),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, kAll), BPF_STMT(BPF_RET | BPF_K, 0)}};
  const sock_fprog program{code.size(), code.data()};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

// Without its marks a datagram still arrives, though by another queue. SO_PRIORITY comes last,
// because IP_TOS sets it, too; 7 needs CAP_NET_ADMIN.
void mark(int fd, const PacketMarks& marks) {
  const int tos = wire::without_ecn(marks.traffic_class), priority = marks.service_level;
  setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
  setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
}

}  // namespace

Expected<std::unique_ptr<KernelChannel>> KernelChannel::open(wire::Ipv4 address,
                                                             std::uint16_t mrp_port,
                                                             const PacketMarks& marks) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(MCAST_ERR_NO_DEVICE, errno_text("no UDP socket", errno));
  std::unique_ptr<KernelChannel> channel(new KernelChannel(fd, mrp_port));
  mark(fd, marks);
  sockaddr_in own = socket_address(address, 0);
  socklen_t length = sizeof own;
  if (keep_others_out(fd, mrp_port) != 0) {
    return fail(MCAST_ERR_NO_DEVICE, errno_text("no filter for a UDP socket", errno));
  }
  if (bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return fail(MCAST_ERR_NO_DEVICE, errno_text("a UDP port of " + address.to_string(), errno));
  }
  channel->port_ = ntohs(own.sin_port);
  return channel;
}

int KernelChannel::send(wire::Ipv4 to, std::span<const std::uint8_t> datagram) {
  const sockaddr_in address = socket_address(to, mrp_port_);
  const ssize_t n = sendto(fd_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL,
                           reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return n < 0 ? errno : 0;
}

std::optional<ControlChannel::Received> KernelChannel::receive(std::span<std::uint8_t> out) {
  sockaddr_in from{};
  // An ICMP error about an earlier datagram is reported once in place of a datagram: read again.
  for (int tries = 0; tries < 4; ++tries) {
    socklen_t length = sizeof from;
    const ssize_t n = recvfrom(fd_.get(), out.data(), out.size(), MSG_TRUNC,
                               reinterpret_cast<sockaddr*>(&from), &length);
    if (n >= 0 && static_cast<std::size_t>(n) <= out.size() && from.sin_family == AF_INET &&
        from.sin_port == htons(mrp_port_)) {
      return Received{wire::Ipv4(ntohl(from.sin_addr.s_addr)), static_cast<std::size_t>(n)};
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
  }
  return std::nullopt;
}

}  // namespace cepheus::mcast
