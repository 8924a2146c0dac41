#include "switch-emulator/ports/test_veth.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace cepheus::fabric {
namespace {

constexpr int kTimeLimitMs = 20'000;  // more than any machine needs
constexpr std::size_t kLargest = 9000;

UniqueFd open_raw(const char* interface) {
  UniqueFd fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(if_nametoindex(interface));
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.reset();
  const int one = 1;
  setsockopt(fd.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
  return fd;
}

}  // namespace

bool TestVeth::ip(const std::string& arguments) {
  return std::system(("ip " + arguments + " >/dev/null 2>&1").c_str()) == 0;
}

bool TestVeth::stop_link() {
  return std::system("tc qdisc add dev port root tbf rate 8bit burst 5000 limit 5000") == 0;
}

bool TestVeth::resume_link() { return std::system("tc qdisc del dev port root") == 0; }

wire::Result<std::unique_ptr<TestVeth>> TestVeth::make(unsigned mtu) {
  if (unshare(CLONE_NEWNET) != 0) {
    return wire::unavailable(std::string("no network namespace: ") + std::strerror(errno) +
                             "; run the tests as root to have one");
  }
  std::unique_ptr<TestVeth> veth(new TestVeth(mtu));
  if (!veth->make_pair()) {
    return wire::unavailable("no veth pair: apt-get install iproute2, modprobe veth");
  }
  return veth;
}

bool TestVeth::make_pair() {
  // A new namespace forwards if the machine does, as with containers.
  std::ofstream("/proc/sys/net/ipv4/ip_forward") << 0;
  const std::string bytes = std::to_string(mtu_);
  const bool made =
      ip("link add name host mtu " + bytes + " type veth peer name port mtu " + bytes);
  // Without IPv6, if there is any: its neighbour discovery sends frames of its own.
  for (const char* end : {"host", "port"}) {
    ip(std::string("link set dev ") + end + " addrgenmode none");
    ip(std::string("link set dev ") + end + " up");
  }
  socket_ = open_raw("host");
  return made && socket_.is_open();
}

bool TestVeth::send(const std::vector<std::uint8_t>& frame) {
  return ::send(socket_.get(), frame.data(), frame.size(), 0) == static_cast<ssize_t>(frame.size());
}

std::optional<std::vector<std::uint8_t>> TestVeth::receive() {
  std::vector<std::uint8_t> frame(kLargest);
  for (;;) {
    pollfd waiting{socket_.get(), POLLIN, 0};
    if (poll(&waiting, 1, kTimeLimitMs) <= 0) return std::nullopt;
    const ssize_t length = recv(socket_.get(), frame.data(), frame.size(), 0);
    if (length < 0) return std::nullopt;
    const bool ipv6 = length >= 14 && frame[12] == 0x86 && frame[13] == 0xDD;
    if (ipv6) continue;  // the kernel's own
    frame.resize(static_cast<std::size_t>(length));
    return frame;
  }
}

}  // namespace cepheus::fabric
