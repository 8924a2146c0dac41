// A host on a real network, for tests in network namespaces: the emulated NIC's port on one side, a
// network interface on the other.
//
//   wire_host INTERFACE ADDRESS SOCKET MTU
//
// Processes attach at SOCKET as at a fabric, one after another, and are the host ADDRESS. Their
// packets leave by INTERFACE to the next hop in this namespace's kernel, as an RDMA NIC sends them,
// without a switch of ours. A line on stdout reports that it serves.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>

#include "switch-emulator/live/control/listening_socket.h"
#include "switch-emulator/live/control/poller.h"
#include "switch-emulator/ports/next_hops.h"
#include "switch-emulator/ports/packet_socket.h"
#include "switch-emulator/ports/received_frames.h"
#include "switch-emulator/ports/switch_port.h"
#include "wire/byte_order.h"
#include "wire/clock.h"
#include "wire/roce.h"

namespace cepheus {
namespace {

using fabric::NextHops;
using fabric::PacketSocket;
using wire::Frame;
using wire::Instant;
using wire::Ipv4;

constexpr std::uint32_t kFrameOverhead = 128;
constexpr int kHelloMs = 5000;
constexpr int kIdleRounds = 64;  // before it sleeps
constexpr wire::Duration kAddressLifetime = std::chrono::seconds(1);
constexpr wire::Duration kBetweenRequests = std::chrono::milliseconds(20);

Ipv4 address_at(const std::uint8_t* bytes, std::size_t offset) {
  return Ipv4(wire::load_be32(bytes + wire::kIpOffset + offset));
}
Ipv4 destination_of(const std::uint8_t* bytes) { return address_at(bytes, 16); }

template <typename T>
T need(wire::Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "wire_host: %s\n", result.error().text.c_str());
  std::exit(1);
}

class WireHost {
 public:
  WireHost(const std::string& interface, Ipv4 address, const std::string& path, std::uint32_t mtu)
      : largest_(mtu + kFrameOverhead),
        pools_(fabric::PoolGeometry::for_hosts(1, mtu)),
        port_(pools_, 0, to_flush_),
        pool_(need(pools_.pool_for(geteuid()))),
        hops_(need(NextHops::open(interface))),
        wire_(need(PacketSocket::open(interface, largest_, PacketSocket::Filter::kOwnIpv4))),
        listener_(need(live::ListeningSocket::open(path, SOCK_SEQPACKET, 0600))),
        poller_(need(live::Poller::create())) {
    identity_.name = "host-" + address.to_string();
    identity_.address = address;
    identity_.mac = identity_.gateway = hops_->own_mac();
    identity_.mtu = mtu;
    identity_.icrc_always = true;
    identity_.host_count = 1;
    poller_.watch(listener_.fd(), live::Poller::kIn, [this](std::uint32_t) { admit(); });
    poller_.watch(wire_->fd(), live::Poller::kIn | live::Poller::kEdge,
                  [this](std::uint32_t) { wire_->clear_error(); });
  }

  [[noreturn]] void run() {
    for (int idle = 0;;) {
      const bool worked = pump(wire::monotonic_now());
      idle = worked ? 0 : idle + 1;
      const bool sleeps = idle > kIdleRounds && (!port_.is_open() || port_.arm()) &&
                          !wire_->has_received() && !wire_->is_pending();
      poller_.wait(wire::Duration{sleeps ? -1 : 0});
      if (sleeps) idle = 0;
    }
  }

 private:
  struct Neighbour {
    NextHops::Hop hop;
    Instant next_check{};
  };

  void admit() {
    fabric::UniqueFd visitor = listener_.accept({});
    if (!visitor.is_open()) return;
    pollfd waiting{visitor.get(), POLLIN, 0};
    if (poll(&waiting, 1, kHelloMs) <= 0 || !fabric::receive_message(visitor.get())) return;
    // The end of the last client's socket may be behind this in the queue.
    pollfd last{client_.get(), POLLRDHUP, 0};
    if (client_.is_open() && poll(&last, 1, 0) > 0) leave();
    fabric::Welcome welcome;
    const auto peer = fabric::peer_credentials(visitor.get());
    if (client_.is_open() || !peer) {
      welcome.status = fabric::WelcomeStatus::kHostTaken;
      welcome.text = "the host is taken: end its process";
      fabric::send_message(visitor.get(), encode(welcome));
      return;
    }
    const fabric::GrantedFds granted = need(port_.open(*peer));
    welcome.identity = identity_;
    welcome.pool = pools_.geometry();
    client_ = std::move(visitor);
    fabric::send_message(client_.get(), encode(welcome), granted);
    port_.forget_granted();
    poller_.watch(port_.doorbell(), live::Poller::kIn | live::Poller::kEdge, [](std::uint32_t) {});
    poller_.watch(client_.get(), live::Poller::kHangup, [this](std::uint32_t) { leave(); });
  }

  // Its last frames are on the ring.
  void leave() {
    pump(wire::monotonic_now());
    poller_.forget(port_.doorbell());
    poller_.forget(client_.get());
    port_.close();
    client_.reset();
  }

  bool pump(Instant now) {
    bool worked = false;
    Frame frame;
    while (port_.is_open() && has_space() && port_.receive(frame)) {
      worked = true;
      send(frame, now);
      if (frame.ref != wire::kNoBuffer) pools_.drop(frame.ref);
    }
    while (const auto received = wire_->next()) {
      worked = true;
      take(*received, now);
      wire_->release();
    }
    if (wire_->has_pushed() || wire_->is_pending()) wire_->kick();
    if (port_.is_open()) port_.reclaim();
    for (fabric::AccessPort* each : to_flush_) each->flush();
    to_flush_.clear();
    return worked;
  }

  // A NIC's packets wait in memory until its link is free.
  bool has_space() {
    if (wire_->send_buffer().empty()) wire_->kick();
    return !wire_->send_buffer().empty();
  }

  // Precondition: has_space().
  void send(const Frame& frame, Instant now) {
    const auto to = mac_towards(destination_of(frame.bytes.data()), now);
    if (!to) return;
    const auto out = wire_->send_buffer();
    const std::size_t length = frame.to_bytes(out);
    if (length == 0) return;
    std::memcpy(out.data(), to->octets.data(), 6);
    std::memcpy(out.data() + 6, hops_->own_mac().octets.data(), 6);
    wire_->push(static_cast<std::uint32_t>(length));
  }

  std::optional<wire::Mac> mac_towards(Ipv4 destination, Instant now) {
    Neighbour& neighbour = neighbours_[destination];
    if (now >= neighbour.next_check) {
      const auto hop = hops_->find(destination);
      neighbour.hop = hop ? *hop : NextHops::Hop();
      neighbour.next_check = now + (neighbour.hop.mac ? kAddressLifetime : kBetweenRequests);
      if (hop && !hop->is_fresh) hops_->request_hop(hop->address);
    }
    return neighbour.hop.mac;
  }

  void take(const PacketSocket::Received& received, Instant now) {
    Frame frame;
    if (!port_.is_open() || fabric::flaw_of(received, largest_, wire::kDefaultMcstPool) ||
        received.bytes.size() < wire::kUdpOffset ||
        destination_of(received.bytes.data()) != identity_.address ||
        fabric::take_in(pools_, pool_, received, frame)) {
      return;
    }
    port_.deliver(frame, fabric::kFabricItself, now);
    if (frame.ref != wire::kNoBuffer) pools_.drop(frame.ref);
  }

  const std::uint32_t largest_;
  fabric::FlushList to_flush_;
  fabric::PayloadPools pools_;
  fabric::SwitchPort port_;
  const std::uint32_t pool_;
  const std::unique_ptr<NextHops> hops_;
  const std::unique_ptr<PacketSocket> wire_;
  live::ListeningSocket listener_;
  live::Poller poller_;
  fabric::HostIdentity identity_;
  fabric::UniqueFd client_;
  std::unordered_map<Ipv4, Neighbour> neighbours_;
};

}  // namespace
}  // namespace cepheus

int main(int argc, char** argv) {
  const auto address = argc == 5 ? cepheus::wire::Ipv4::parse(argv[2]) : std::nullopt;
  const int mtu = argc == 5 ? std::atoi(argv[4]) : 0;
  if (!address || mtu <= 0) {
    std::fprintf(stderr, "usage: wire_host INTERFACE ADDRESS SOCKET MTU\n");
    return 2;
  }
  cepheus::WireHost host(argv[1], *address, argv[3], static_cast<std::uint32_t>(mtu));
  std::puts("ready");
  std::fflush(stdout);
  host.run();
}
