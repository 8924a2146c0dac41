// Opening: a socket that receives nothing, the rings, the binding, then frames. A slot has room for
// the largest frame, rounded up to a power of two. All frames of one kick() get one priority, so a
// change of priority kicks first.
//
// On an interface that is down, frames not taken are taken back and counted. fill() finds the
// oldest queued frame by bisection, because the kernel sends in order. Bounds: kReceiveSlots and
// kSendSlots. Sources: packet(7), RFC 2474.
#include "switch-emulator/ports/packet_socket.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "switch-emulator/ports/interface_check.h"
#include "wire/roce.h"

namespace cepheus::fabric {
namespace {

// Several of a NIC's windows; the kernel drops packets that arrive while this process does not run.
constexpr std::uint32_t kReceiveSlots = 2048;
constexpr std::uint32_t kBlockBytes = 64 << 10;  // physically contiguous
constexpr int kSendBuffer = 16 << 20;            // bytes under way in the kernel

// A TOS byte's class selector (RFC 2474, 4.2.2): NICs that trust a DSCP map it to a priority so.
constexpr int kClassShift = 5;
constexpr int kMostPriority = 6;  // 7 needs CAP_NET_ADMIN

// Offset of a frame in a slot of the send ring.
constexpr std::uint32_t kSendOffset = TPACKET2_HDRLEN - sizeof(sockaddr_ll);

std::uint32_t load_status(const std::uint8_t* slot) {
  auto* header = reinterpret_cast<tpacket2_hdr*>(const_cast<std::uint8_t*>(slot));
  return __atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE);
}

void store_status(std::uint8_t* slot, std::uint32_t status) {
  __atomic_store_n(&reinterpret_cast<tpacket2_hdr*>(slot)->tp_status, status, __ATOMIC_RELEASE);
}

template <typename T>
bool set_option(int fd, int level, int option, const T& value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

std::string reason(int error) { return std::strerror(error); }

tl::unexpected<wire::Error> refused(const std::string& interface, int error) {
  std::string text = "interface " + interface + ": " + reason(error);
  if (error == EPERM || error == EACCES) {
    text = "interface " + interface +
           ": a packet socket needs CAP_NET_RAW; run cepheus-switch as root, or give it the "
           "capability with: setcap cap_net_raw+ep $(command -v cepheus-switch)";
  } else if (error == ENODEV || error == ENXIO) {
    text = "there is no interface " + interface + "; ip link lists the interfaces";
  }
  return wire::unavailable(std::move(text));
}

// The kernel's data of the interface, if one has that name.
std::optional<ifreq> send_request(int fd, const std::string& interface, unsigned long question) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  if (ioctl(fd, question, &request) != 0) return std::nullopt;
  return request;
}

tpacket_req ring_request(std::uint32_t slots, std::uint32_t slot_bytes) {
  tpacket_req request{};
  request.tp_block_size = kBlockBytes;
  request.tp_frame_size = slot_bytes;
  request.tp_frame_nr = slots;
  request.tp_block_nr = slots / (kBlockBytes / slot_bytes);
  return request;
}

}  // namespace

wire::Result<std::unique_ptr<PacketSocket>> PacketSocket::open(const std::string& interface,
                                                               std::uint32_t largest_frame,
                                                               Filter filter) {
  std::unique_ptr<PacketSocket> packets(new PacketSocket);
  // Protocol 0: nothing is received before the rings are there.
  packets->fd_.reset(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!packets->fd_.is_open()) return refused(interface, errno);
  const auto found = send_request(packets->fd_.get(), interface, SIOCGIFMTU);
  if (!found) return refused(interface, errno);
  const auto mtu = static_cast<std::uint32_t>(found->ifr_mtu);
  const InterfaceCheck fits = check_mtu(interface, mtu, largest_frame);
  if (fits.verdict == InterfaceCheck::Verdict::kUnusable) {
    return wire::unavailable(fits.to_text(interface));
  }
  if (auto mapped = packets->map_rings(largest_frame); !mapped) {
    return tl::unexpected(mapped.error());
  }
  if (auto bound = packets->bind_to(interface, filter); !bound) {
    return tl::unexpected(bound.error());
  }
  return packets;
}

PacketSocket::~PacketSocket() {
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
}

wire::Result<void> PacketSocket::map_rings(std::uint32_t largest_frame) {
  const std::uint32_t slot_bytes = std::bit_ceil(largest_frame + TPACKET2_HDRLEN + 64);
  const tpacket_req receive = ring_request(kReceiveSlots, slot_bytes);
  const tpacket_req send = ring_request(kSendSlots, slot_bytes);
  const int fd = fd_.get();
  const bool accepted = set_option(fd, SOL_PACKET, PACKET_VERSION, int{TPACKET_V2}) &&
                        set_option(fd, SOL_PACKET, PACKET_LOSS, 1) &&
                        set_option(fd, SOL_PACKET, PACKET_RX_RING, receive) &&
                        set_option(fd, SOL_PACKET, PACKET_TX_RING, send);
  if (!accepted) {
    return wire::unavailable("no packet rings of " + std::to_string(slot_bytes) +
                             " bytes a frame: " + reason(errno) +
                             "; free memory, or use a smaller mtu in the topology");
  }
  const std::size_t receive_bytes = std::size_t{kReceiveSlots} * slot_bytes;
  memory_bytes_ = receive_bytes + std::size_t{kSendSlots} * slot_bytes;
  void* mapped = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) {
    return wire::call_failed("can't map packet rings");
  }
  memory_ = static_cast<std::uint8_t*>(mapped);
  rx_ = {memory_, slot_bytes, kReceiveSlots, 0};
  tx_ = {memory_ + receive_bytes, slot_bytes, kSendSlots, 0};
  largest_frame_ = largest_frame;
  return {};
}

wire::Result<void> PacketSocket::bind_to(const std::string& interface, Filter filter) {
  const int fd = fd_.get();
  const auto found = send_request(fd, interface, SIOCGIFINDEX);
  if (!found) return refused(interface, errno);
  interface_ = interface;
  index_ = found->ifr_ifindex;
  // Otherwise sent frames would come back as received.
  if (!set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)) {
    return wire::unavailable(
        "the kernel is too old for packet ports (PACKET_IGNORE_OUTGOING): use 4.20 or later");
  }
  // The other options help, but are not needed.
  if (!set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, kSendBuffer)) {
    set_option(fd, SOL_SOCKET, SO_SNDBUF, kSendBuffer);
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(filter == Filter::kEverything ? ETH_P_ALL : ETH_P_IP);
  address.sll_ifindex = index_;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return refused(interface, errno);
  }
  if (filter == Filter::kOwnIpv4) return {};
  // Hosts send to the switch's MAC address, which is not the interface's.
  packet_mreq everything{};
  everything.mr_ifindex = index_;
  everything.mr_type = PACKET_MR_PROMISC;
  if (!set_option(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, everything)) {
    return refused(interface, errno);
  }
  return {};
}

bool PacketSocket::is_at_its_interface() const {
  const auto found = send_request(fd_.get(), interface_, SIOCGIFINDEX);
  return found && found->ifr_ifindex == index_;
}

bool PacketSocket::has_received() const { return (load_status(rx_.slot()) & TP_STATUS_USER) != 0; }

std::optional<PacketSocket::Received> PacketSocket::next() {
  std::uint8_t* slot = rx_.slot();
  const std::uint32_t status = load_status(slot);
  if ((status & TP_STATUS_USER) == 0) return std::nullopt;
  const auto* header = reinterpret_cast<const tpacket2_hdr*>(slot);
  Received received;
  received.bytes = {slot + header->tp_mac, header->tp_snaplen};
  received.checksum_missing = (status & TP_STATUS_CSUMNOTREADY) != 0;
  received.truncated = header->tp_snaplen < header->tp_len;
  if ((status & TP_STATUS_VLAN_VALID) != 0) received.vlan_tag = header->tp_vlan_tci;
  received.losing = (status & TP_STATUS_LOSING) != 0;
  return received;
}

void PacketSocket::release() {
  store_status(rx_.slot(), TP_STATUS_KERNEL);
  rx_.advance();
}

std::uint32_t PacketSocket::take_dropped() {
  tpacket_stats statistics{};
  socklen_t length = sizeof statistics;
  getsockopt(fd_.get(), SOL_PACKET, PACKET_STATISTICS, &statistics, &length);
  return statistics.tp_drops;
}

void PacketSocket::clear_error() {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
}

std::optional<PortCounter> PacketSocket::send(const wire::Frame& frame, const wire::Mac& from,
                                              const wire::Mac& to) {
  // First: it may move send_buffer() by taking frames back from an interface that is down.
  if (frame.header_len >= wire::kUdpOffset) set_priority(frame.header()[wire::kIpOffset + 1]);
  const auto out = send_buffer();
  if (out.empty()) return PortCounter::kDropEgressFull;
  const std::size_t length = frame.to_bytes(out);
  if (length == 0) return PortCounter::kDropOversize;
  set_macs(out, from, to);
  push(static_cast<std::uint32_t>(length));
  return std::nullopt;
}

// The kernel gives all frames of one kick() the socket's present priority. Frames that it had no
// room for get a later one.
void PacketSocket::set_priority(std::uint8_t tos) {
  const int priority = std::min(tos >> kClassShift, kMostPriority);
  if (priority == priority_) return;
  if (pushed_) down_ = kick();
  if (set_option(fd_.get(), SOL_SOCKET, SO_PRIORITY, priority)) priority_ = priority;
}

std::span<std::uint8_t> PacketSocket::send_buffer() {
  const std::uint32_t status = load_status(tx_.slot());
  if ((status & (TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING)) != 0) return {};
  return {tx_.slot() + kSendOffset, largest_frame_};
}

void PacketSocket::push(std::uint32_t length) {
  reinterpret_cast<tpacket2_hdr*>(tx_.slot())->tp_len = length;
  store_status(tx_.slot(), TP_STATUS_SEND_REQUEST);
  tx_.advance();
  pushed_ = true;
}

std::uint32_t PacketSocket::kick() {
  pushed_ = false;
  const std::uint32_t before = std::exchange(down_, 0);
  if (::send(fd_.get(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return before;
  const bool down = errno == ENETDOWN || errno == ENXIO || errno == ENODEV;
  // Other errors are temporary, or concern single frames, which the kernel skips.
  return before + (down ? take_back_pending() : 0);
}

// The kernel continues at the first frame that it did not take, and so does this loop.
std::uint32_t PacketSocket::take_back_pending() {
  std::uint32_t count = 0;
  for (; is_pending() && count < tx_.count; ++count) {
    tx_.next = tx_.before();
    store_status(tx_.slot(), TP_STATUS_AVAILABLE);
  }
  return count;
}

// The kernel sends in order, so all later frames are in the ring as well.
bool PacketSocket::is_queued(std::uint32_t back) const {
  const std::uint32_t status = load_status(tx_.slot(tx_.before(back)));
  return (status & (TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING)) != 0;
}

bool PacketSocket::is_filling() const { return is_queued(kSendSlots / 4); }

std::uint8_t PacketSocket::fill() const {
  std::uint32_t queued = 0;
  for (std::uint32_t step = kSendSlots; step != 0; step /= 2) {
    if (queued + step <= kSendSlots && is_queued(queued + step)) queued += step;
  }
  return static_cast<std::uint8_t>(queued * 100 / kSendSlots);
}

bool PacketSocket::is_pending() const {
  return (load_status(tx_.slot(tx_.before())) & TP_STATUS_SEND_REQUEST) != 0;
}

}  // namespace cepheus::fabric
