// A received frame is one of three: ARP, which is answered here; a frame for the switch; or
// foreign. At most kForeignFramesAtOnce of those that go no further are read in one call.
//
// The host's MAC address is unknown until its first ARP packet. Until then frames for it are
// dropped and counted, and a probe (RFC 5227) is sent each kBetweenQuestions. A full ring is kicked
// once, then the frame is dropped. If the ring fills, copies are marked (ECN).
#include "switch-emulator/ports/wire_port.h"

#include <unistd.h>

#include <cstring>

#include "switch-emulator/ports/received_frames.h"
#include "wire/roce.h"

namespace cepheus::fabric {

constexpr wire::Mac kBroadcast{{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}};
constexpr std::size_t kArpFrame = wire::Ethernet::kSize + wire::Arp::kSize;
// Frames that are not for the switch, before other ports have their turn: the kernel may deliver
// them as fast as they are read.
constexpr std::uint32_t kForeignFramesAtOnce = 64;
constexpr std::size_t kShortestFrame = 60;  // IEEE 802.3, without FCS

WirePort::WirePort(PayloadPools& pools, const std::unordered_set<wire::Ipv4>& neighbours,
                   FlushList& flush_list, WirePortConfig config)
    : AccessPort(flush_list), pools_(pools), neighbours_(neighbours), config_(std::move(config)) {}

wire::Result<void> WirePort::open() {
  auto socket = PacketSocket::open(config_.interface, config_.largest_frame,
                                   PacketSocket::Filter::kEverything);
  if (!socket) return tl::unexpected(socket.error());
  const auto pool = pools_.pool_for(geteuid());
  if (!pool) return tl::unexpected(pool.error());
  pool_ = *pool;
  socket_ = std::move(*socket);
  host_mac_.reset();
  next_question_ = {};
  request_host();
  return {};
}

void WirePort::close() {
  if (!is_open()) return;
  socket_.reset();
  pools_.leave(pool_);
}

bool WirePort::receive(wire::Frame& frame) {
  for (std::uint32_t n = 0; n < kForeignFramesAtOnce; ++n) {
    const auto received = socket_->next();
    if (!received) return false;
    const bool taken = take(*received, frame);
    socket_->release();
    if (taken) return true;
  }
  return false;
}

bool WirePort::take(const PacketSocket::Received& received, wire::Frame& frame) {
  const auto drop = [this](PortCounter reason) {
    refuse(reason);
    return false;
  };
  if (received.losing) count(PortCounter::kDropKernelFull, socket_->take_dropped());
  if (const auto flaw = flaw_of(received, config_.largest_frame, config_.groups))
    return drop(*flaw);
  const auto ethernet = wire::Ethernet::parse(received.bytes);
  if (!ethernet) return drop(PortCounter::kDropMalformed);
  if (ethernet->ether_type == wire::Ethernet::kArp) {
    const auto arp = wire::Arp::parse(received.bytes.subspan(wire::Ethernet::kSize));
    if (arp) on_arp(*arp, ethernet->source);
    return arp ? false : drop(PortCounter::kDropMalformed);
  }
  const auto refused = take_in(pools_, pool_, received, frame);
  return refused ? drop(*refused) : true;
}

bool WirePort::is_served(wire::Ipv4 address) const {
  return address != config_.host &&
         (config_.groups.contains(address) || neighbours_.contains(address));
}

void WirePort::on_arp(const wire::Arp& arp, const wire::Mac& from) {
  // With the sender's own address, which one machine can have.
  if (arp.sender == config_.host && arp.sender_mac == from && from.is_unicast()) host_mac_ = from;
  if (arp.operation != wire::Arp::Operation::kRequest || !is_served(arp.target)) return;
  wire::Arp answer;
  answer.operation = wire::Arp::Operation::kReply;
  answer.sender_mac = config_.gateway;
  answer.sender = arp.target;
  answer.target_mac = arp.sender_mac;
  answer.target = arp.sender;
  send_arp(answer, arp.sender_mac);
  refuse(PortCounter::kArpAnswered);
}

// A probe (RFC 5227) has no sender address, so the host answers it whatever its routes and filters.
void WirePort::request_host() {
  wire::Arp probe;
  probe.sender_mac = config_.gateway;
  probe.target = config_.host;
  send_arp(probe, kBroadcast);
}

void WirePort::send_arp(const wire::Arp& arp, const wire::Mac& to) {
  const auto out = socket_->send_buffer();
  if (out.size() < kShortestFrame) return count(PortCounter::kDropEgressFull);
  std::memset(out.data(), 0, kShortestFrame);
  const wire::Ethernet ethernet{to, config_.gateway, wire::Ethernet::kArp};
  ethernet.emit(out.first<wire::Ethernet::kSize>());
  arp.emit(out.subspan<wire::Ethernet::kSize, wire::Arp::kSize>());
  static_assert(kArpFrame <= kShortestFrame);
  socket_->push(kShortestFrame);
  mark_for_flush();
}

bool WirePort::deliver(const wire::Frame& frame, SenderNo, wire::Instant now) {
  if (socket_ == nullptr) {
    count(PortCounter::kDropNoClient);
    return false;
  }
  if (!host_mac_) {
    count(PortCounter::kDropNoNeighbour);
    if (now >= next_question_) {
      next_question_ = now + kBetweenQuestions;
      request_host();
    }
    return false;
  }
  wire::Mac from;  // stays as it is
  std::memcpy(from.octets.data(), frame.bytes.data() + from.octets.size(), from.octets.size());
  const bool is_marked = is_ecn_capable(frame) && socket_->is_filling();
  if (is_marked) count(PortCounter::kMarkedByFill);
  const auto refused = is_marked ? offer(marked(frame), from) : offer(frame, from);
  if (refused) {
    count(*refused);
    return false;
  }
  mark_for_flush();
  return true;
}

std::optional<PortCounter> WirePort::offer(const wire::Frame& frame, const wire::Mac& from) {
  const auto refused = socket_->send(frame, from, *host_mac_);
  if (refused != PortCounter::kDropEgressFull) return refused;
  kick();
  return socket_->send(frame, from, *host_mac_);
}

void WirePort::kick() { count(PortCounter::kDropLinkDown, socket_->kick()); }

void WirePort::flush() {
  unmark();
  if (socket_ != nullptr && socket_->has_pushed()) kick();
}

// Offers again the frames that the kernel had no room for.
void WirePort::reclaim() {
  if (socket_ != nullptr && socket_->is_pending()) kick();
}

bool WirePort::arm() {
  reclaim();
  return !socket_->is_pending() && !socket_->has_received();
}

}  // namespace cepheus::fabric
