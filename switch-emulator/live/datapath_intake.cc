// What a datapath takes from its hosts' rings: each has its turn, and none takes more than others can
// bear.
#include <algorithm>
#include <chrono>

#include "switch-emulator/live/datapath.h"
#include "switch-emulator/ports/bulk_data.h"

namespace cepheus::live {
namespace {

// Deficit round robin (Shreedhar and Varghese 1996): bytes from one host before the next has its
// turn, and what a frame costs at least, since a small one keeps the switch as long as a large one.
constexpr std::int64_t kQuantum = 32 * (4096 + 128);
constexpr std::int64_t kLeastCost = 2048;
constexpr std::uint32_t kRoundsUntilRest =
    4096;  // empty looks at a ring before its doorbell is armed
// Rings in a row that brought nothing before a client's doorbell is not listened to any more; and
// how often its ring is looked at then.
constexpr std::uint32_t kMostIdleRings = 64;
constexpr wire::Duration kBetweenLooks = std::chrono::milliseconds(1);

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
    flight.origin.is_stray = host.strays.take(frame);
    carry(flight, now);
    release(frame);
  }
  if (host.client->offence()) offend(host.identity.host_index);
  pace(host, now);
  if (taken > 0) {
    host.idle_rings = 0;
    contention_.sent(host.identity.host_index, now);
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
    flight.origin.is_stray = host.strays.take(frame);
    if (!flight.origin.is_stray || host.held_until <= now) carry(flight, now);
    release(frame);
  }
  pace(host, now);
}

// Frames that the switch itself made, or made since the host itself has sent something, are no
// answers of other hosts.
void Datapath::note_answer(Host& host, const Flight& flight) {
  const fabric::SenderNo sender = flight.origin.host;
  if (sender == fabric::kFabricItself || sender == host.identity.host_index) return;
  host.strays.on_answer(flight.frame);
}

// The receiver had no room for a frame. No answer will come, so none pays for it: two hosts that
// flood each other may not lose frames for free.
void Datapath::charge_refused(const Flight& flight) {
  const fabric::SenderNo sender = flight.origin.host;
  if (sender == fabric::kFabricItself || flight.origin.is_stray) return;
  hosts_[sender].strays.charge(flight.frame);
}

// Of each frame that none paid for, more than one copy.
void Datapath::charge_copies(fabric::SenderNo sender, wire::PortId ingress) {
  bool is_first = true;
  for (const fabric::Emit& emit : actions_.emits) {
    if (emit.origin != ingress) continue;
    if (!std::exchange(is_first, false)) hosts_[sender].strays.charge(emit.frame);
  }
}

// A host that has sent too much that nobody answers waits, if others send.
void Datapath::pace(Host& host, wire::Instant now) {
  const bool others_send = contention_.others_send(host.identity.host_index, now);
  const auto until = host.strays.settle(now, host.client->refused(), others_send);
  if (!until) return;
  host.held_until = *until;
  if (host.held_until <= now) return;
  host.client->count(fabric::PortCounter::kHeldBack);
  host.resume = std::max(host.resume, host.held_until);
}

}  // namespace cepheus::live
