// What a datapath takes from its hosts' rings: each has its turn, and none takes more than others can
// bear.
#include <algorithm>
#include <chrono>

#include "switch-emulator/live/datapath.h"
#include "switch-emulator/ports/bulk_data.h"
#include "wire/byte_order.h"

namespace cepheus::live {
namespace {

// Deficit round robin (Shreedhar and Varghese 1996): bytes from one host before the next has its
// turn, and what a frame costs at least, since a small one keeps the switch as long as a large one.
constexpr std::int64_t kQuantum = 32 * (4096 + 128);
constexpr std::int64_t kLeastCost = 2048;
// Who has sent something within this time is taken to go on: longer than a scheduler keeps a
// program from its core beside others.
constexpr wire::Duration kContention = std::chrono::milliseconds(10);
constexpr std::uint32_t kRoundsUntilRest =
    4096;  // empty looks at a ring before its doorbell is armed
// Rings in a row that brought nothing before a client's doorbell is not listened to any more; and
// how often its ring is looked at then.
constexpr std::uint32_t kMostIdleRings = 64;
constexpr wire::Duration kBetweenLooks = std::chrono::milliseconds(1);
constexpr std::uint32_t kSmallestMtu = 256;
// Bytes that are read, checked and copied in the time that a frame takes which only passes.
constexpr std::int64_t kReadAtCost = 64;

wire::Ipv4 source_of(const wire::Frame& frame) {
  return wire::Ipv4(wire::load_be32(frame.bytes.data() + wire::kIpOffset + 12));
}
wire::Ipv4 destination_of(const wire::Frame& frame) {
  return wire::Ipv4(wire::load_be32(frame.bytes.data() + wire::kIpOffset + 16));
}

// What a frame costs that nobody pays for: registration is read by switches and processes alike.
std::int64_t cost_of(const wire::Frame& frame) {
  return frame.icrc_state == wire::Icrc::kNone ? 1 + frame.payload_len / kReadAtCost : 1;
}

// Response packets that a RoCE frame asks for at most.
std::uint32_t responses_asked(const wire::Frame& frame) {
  const auto opcode = static_cast<wire::Opcode>(frame.bytes[wire::kBthOffset]);
  constexpr std::size_t kDmaLength = wire::kExtensionOffset + 12;
  if (opcode != wire::Opcode::kRcReadRequest || frame.header_len < kDmaLength + 4) return 0;
  return wire::load_be32(frame.bytes.data() + kDmaLength) / kSmallestMtu + 1;
}

}  // namespace

bool Datapath::wake(std::size_t index) {
  Host& host = hosts_[index];
  if (!host.client->is_open()) return true;
  activate(index);
  // Who is asked to ring rings once, and has sent something. A network interface does not ring.
  if (host.shared == nullptr || ++host.idle_rings <= kMostIdleRings) return true;
  host.client->count(fabric::PortCounter::kDoorbellIgnored);
  host.is_unheard = true;
  host.resume = std::max(host.resume, last_poll_ + kBetweenLooks);
  return false;
}

// A ring that has been empty for long is left to its doorbell.
bool Datapath::may_rest(Host& host) {
  if (last_poll_ < host.resume || ++host.idle_rounds < kRoundsUntilRest) return false;
  host.idle_rounds = 0;
  return host.client->arm();
}

bool Datapath::poll_one_armed(wire::Instant now) {
  if (!one_armed_is_active_) return false;
  woken_.clear();
  const bool came = one_armed_->take_in(now, woken_);
  for (const std::size_t host : woken_) activate(host);
  if (came) {
    one_armed_idle_rounds_ = 0;
  } else if (++one_armed_idle_rounds_ >= kRoundsUntilRest) {
    one_armed_idle_rounds_ = 0;
    one_armed_is_active_ = !one_armed_->arm();
  }
  return came;
}

std::size_t Datapath::take_from(Host& host, wire::Instant now) {
  if (now < host.resume) return 0;
  host.credit = std::min(host.credit + kQuantum, kQuantum);
  std::size_t taken = 0;
  Flight flight;
  flight.link = host.uplink;
  flight.origin.host = host.identity.host_index;
  wire::Frame& frame = flight.frame;
  while (host.credit > 0 && !uplink_is_busy(host, now) && host.client->receive(frame)) {
    ++taken;
    if (fabric::is_bulk_data(frame)) bulk_run_.took_frame();
    host.credit -= std::max(static_cast<std::int64_t>(frame.size()), kLeastCost);
    flight.origin.is_stray = is_stray(host, frame);
    carry(flight, now);
    release(frame);
  }
  if (host.client->offence()) offend(host.identity.host_index);
  pace(host, now);
  if (taken > 0) {
    host.idle_rings = 0;
    note_sender(host.identity.host_index, now);
  } else if (host.is_unheard) {
    host.resume = std::max(host.resume, now + kBetweenLooks);
  }
  return taken;
}

// What a client sent before it ended is on its way: a program may exit as soon as its last ACK is
// on the ring. But no flood gets round its budget by coming and going.
void Datapath::drain(Host& host, wire::Instant now) {
  Flight flight;
  flight.link = host.uplink;
  flight.origin.host = host.identity.host_index;
  wire::Frame& frame = flight.frame;
  for (std::uint32_t n = 0; n < fabric::kFrameRing && host.client->receive(frame); ++n) {
    flight.origin.is_stray = is_stray(host, frame);
    if (!flight.origin.is_stray || host.held_until <= now) carry(flight, now);
    release(frame);
  }
  pace(host, now);
}

// Whether nobody answers such frames of the host; it is charged for one that it has sent. What is
// not RoCE has no stream.
bool Datapath::is_stray(Host& host, const wire::Frame& frame) {
  const bool is_roce = frame.icrc_state != wire::Icrc::kNone;
  if (is_roce && host.answered.take(destination_of(frame))) return false;
  host.strays += cost_of(frame);
  return true;
}

// What the switch says to a host of its own accord, or since the host itself has sent something, is
// no answer of another.
void Datapath::note_answer(Host& host, const Flight& flight) {
  const wire::Frame& frame = flight.frame;
  if (frame.icrc_state == wire::Icrc::kNone || flight.origin.host == fabric::kFabricItself ||
      flight.origin.host == host.identity.host_index) {
    return;
  }
  host.answered.on_answer(source_of(frame), responses_asked(frame));
}

// Of each frame that none paid for, more than one copy.
void Datapath::charge_copies(fabric::SenderNo sender, wire::PortId ingress) {
  bool is_first = true;
  for (const fabric::Emit& emit : actions_.emits) {
    if (emit.origin != ingress) continue;
    if (!std::exchange(is_first, false)) hosts_[sender].strays += cost_of(emit.frame);
  }
}

// Who has sent too much that nobody answers waits, if others send.
void Datapath::pace(Host& host, wire::Instant now) {
  const std::uint64_t refused = host.client->refused();
  host.strays += static_cast<std::int64_t>(refused - std::exchange(host.refused, refused));
  if (host.strays == 0) return;
  host.budget.charge(now, std::exchange(host.strays, 0));
  if (!others_send(host.identity.host_index, now)) return host.budget.forgive(now);
  host.held_until = host.budget.resume(now);
  if (host.held_until <= now) return;
  host.client->count(fabric::PortCounter::kHeldBack);
  host.resume = std::max(host.resume, host.held_until);
}

bool Datapath::others_send(std::size_t host, wire::Instant now) const {
  return (host == last_sender_ ? sent_before_ : last_sent_) + kContention > now;
}

void Datapath::note_sender(std::size_t host, wire::Instant now) {
  if (host != last_sender_) sent_before_ = last_sent_;
  last_sender_ = host;
  last_sent_ = now;
}

}  // namespace cepheus::live
