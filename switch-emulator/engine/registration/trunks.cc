#include "switch-emulator/engine/registration/trunks.h"

#include <algorithm>

#include "wire/situation.h"

namespace cepheus::fabric {
namespace {

std::int64_t microseconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

// Largest difference of stamps after which an older list counts as overtaken. Beyond it, the far
// end has restarted with another clock.
std::int32_t late_by(const Call& call) {
  return static_cast<std::int32_t>(microseconds(wire::times::kHellosMissed * call.config.hello));
}

}  // namespace

Trunks::Trunks(const SwitchConfig& config, Routes& routes)
    : routes_(routes), index_(config.ports.size(), kNone) {
  if (config.hello.count() == 0) next_ = wire::kNever;
  for (std::size_t i = 0; i < config.ports.size(); ++i) {
    if (config.ports[i].kind != PortKind::kSwitch) continue;
    index_[i] = trunks_.size();
    Trunk trunk;
    trunk.port = PortId(static_cast<std::uint16_t>(i));
    trunks_.push_back(std::move(trunk));
  }
}

void Trunks::on_datagram(Call& call, const Frame& frame, const wire::UdpHeaders& headers) {
  const auto datagram = wire::UdpDatagram::parse(frame, headers);
  const auto hello = wire::Hello::parse(frame.payload());
  if (!datagram || !hello || datagram->ip.source != call.port(call.ingress()).peer) {
    return call.count(Counter::kDropMalformed);
  }
  call.count(Counter::kHello);
  Trunk& trunk = at(call.ingress());
  const auto newer = static_cast<std::int32_t>(hello->stamp - trunk.stamp);
  if (newer < 0 && newer > -late_by(call)) {
    CEPHEUS_SITUATION("a HELLO is overtaken by a later one");
    return;
  }
  if (newer != 0) {
    trunk.stamp = hello->stamp;
    trunk.next_part = 0;
    trunk.coming.clear();
  }
  trunk.is_received = hello->receives;
  if (!trunk.is_up) ++trunk.in_a_row;
  judge(call, trunk);
  if (hello->seq != trunk.next_part) {  // a part was lost, or is duplicated
    CEPHEUS_SITUATION("a part of a list of unreachable switches is lost, or comes twice");
    return;
  }
  ++trunk.next_part;
  trunk.coming.insert(trunk.coming.end(), hello->list().begin(), hello->list().end());
  if (trunk.next_part < hello->total || trunk.coming == trunk.unreachable) return;
  std::swap(trunk.coming, trunk.unreachable);
  if (!call.rules().trunk_withdrawals) return;
  if (!routes_.set_unreachable(trunk.port, trunk.unreachable)) return;
  CEPHEUS_SITUATION("a neighbour withdraws a route, or takes it back");
  has_withdrawals_ = true;
  announce(call, true);
}

void Trunks::on_port(Call& call, PortId port, bool up) {
  if (index_[port.value()] == kNone) return;
  Trunk& trunk = at(port);
  if (trunk.is_whole == up) return;
  trunk.is_whole = up;
  trunk.missed = 0;
  if (up) {
    trunk.is_up = trunk.receives = trunk.is_received = true;
    routes_.set_up(port, true);
    changes_.push_back({port, true});
    announce(call, true);
  } else {
    judge(call, trunk);
  }
}

// Combines the states of both directions.
void Trunks::judge(Call& call, Trunk& trunk) {
  constexpr unsigned kMost = wire::times::kHellosMissed;
  if (trunk.missed >= 2) trunk.in_a_row = 0;
  trunk.receives = trunk.is_up ? trunk.missed < kMost : trunk.in_a_row >= kMost;
  const bool is_live = (trunk.receives && trunk.is_received) || !call.rules().dark_trunks;
  const bool up = trunk.is_whole && is_live;
  if (up == trunk.is_up) return;
  trunk.is_up = up;
  trunk.in_a_row = 0;
  if (!up) call.counters.add(trunk.port, Counter::kTrunkDark);
  if (!up && trunk.is_whole && !trunk.receives) CEPHEUS_SITUATION("a trunk brings no HELLOs");
  if (!up && trunk.is_whole && trunk.receives) CEPHEUS_SITUATION("a neighbour receives no HELLOs");
  if (up) CEPHEUS_SITUATION("a dark trunk works again");
  routes_.set_up(trunk.port, up);
  changes_.push_back({trunk.port, up});
  announce(call, true);
}

void Trunks::on_timer(Call& call) {
  if (call.now < next_ || next_ == wire::kNever) return;
  // At the same moments in all switches, so that a sleeping machine wakes once for all of them.
  const auto since = call.now.time_since_epoch();
  next_ = Instant(since - since % call.config.hello + call.config.hello);
  for (Trunk& trunk : trunks_) {
    if (!trunk.is_whole) continue;
    judge(call, trunk);
    ++trunk.missed;
  }
  announce(call, false);
}

// To all neighbours; `changed_only`: only if the list has changed.
void Trunks::announce(Call& call, bool changed_only) {
  if (next_ == wire::kNever) return;
  std::swap(before_, unreachable_);
  routes_.list_unreachable(unreachable_);
  if (changed_only && unreachable_ == before_) return;
  stamp_ = std::max(stamp_ + 1, microseconds(call.now.time_since_epoch()));
  for (const Trunk& trunk : trunks_) {
    if (trunk.is_whole) send(call, trunk);
  }
}

void Trunks::send(Call& call, const Trunk& trunk) {
  constexpr std::size_t kMost = wire::Hello::kMaxSwitches;
  const PortConfig& port = call.port(trunk.port);
  wire::UdpDatagram datagram;
  datagram.ethernet.source = call.config.mac;
  datagram.ethernet.destination = port.peer_mac;
  datagram.ip.source = call.config.address;
  datagram.ip.destination = port.peer;
  datagram.udp.source_port = datagram.udp.destination_port = call.config.mrp_port;
  wire::Hello hello;
  hello.receives = trunk.receives;
  hello.stamp = static_cast<std::uint32_t>(stamp_);
  hello.total = static_cast<std::uint16_t>(
      std::max<std::size_t>(1, (unreachable_.size() + kMost - 1) / kMost));
  for (hello.seq = 0; hello.seq < hello.total; ++hello.seq) {
    const std::size_t first = hello.seq * kMost;
    hello.count = std::min(kMost, unreachable_.size() - first);
    std::copy_n(unreachable_.begin() + static_cast<std::ptrdiff_t>(first), hello.count,
                hello.unreachable.begin());
    Frame frame;
    std::array<std::uint8_t, wire::MrpHeader::kSize> bare;
    std::span<std::uint8_t> buffer = bare;
    if (hello.count > 0) buffer = call.scratch.take();
    datagram.emit(frame, buffer.first(hello.emit(buffer)));
    call.emit(Counter::kHelloSent, trunk.port, frame);
  }
}

bool Trunks::take(TrunkChange& change) {
  if (changes_.empty()) return false;
  change = changes_.front();
  changes_.erase(changes_.begin());
  return true;
}

}  // namespace cepheus::fabric
