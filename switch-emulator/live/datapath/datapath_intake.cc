// A datapath's intake from its hosts' rings: each host has its turn, and none takes so much that
// others suffer.
//
// A host's turn takes frames while it has credit (HostTurn), its uplink is free, and it has not
// sent too many unanswered frames while others send (UnansweredAccount). Frames that a client
// leaves behind (left_over) are still sent, but not at the cost of the next client. Those beyond a
// ring, and unanswered ones of a host that must wait, are dropped and counted. A host that breaks
// the ring's rules is sent away.
#include <utility>

#include "switch-emulator/live/datapath/datapath.h"
#include "switch-emulator/ports/switch_port.h"

namespace cepheus::live {

// Each engine learns what the rings of its box, and of emulated hosts, hold without a loss. The rings
// behind a lossless link pause it instead, and those of a one-armed switch's hosts are not its own.
void Datapath::name_data_slots(const net::Topology& topology, net::Topology::Plan& plan) const {
  if (one_armed_ != nullptr) plan.configs[0].data_slots = one_armed_->data_slots();
  for (std::size_t s = 0; s < plan.configs.size(); ++s) {
    for (std::size_t p = 0; p < plan.ends[s].size(); ++p) {
      const net::PortEnd& end = plan.ends[s][p];
      if (end.kind != net::PortKind::kHost) continue;
      net::PortConfig& port = plan.configs[s].ports[p];
      const net::HostSpec& host = topology.hosts[end.host];
      if (!host.interface.empty()) {
        port.data_slots = fabric::PacketSocket::kSendSlots;
      } else if (one_armed_ == nullptr && !host.down.pfc.on) {
        port.ring_window = fabric::kRingWindow;
      }
    }
  }
}

bool Datapath::wake(std::size_t index) {
  Host& host = hosts_[index];
  if (!host.client->is_open()) return true;
  activate(index);
  // A network interface does not ring.
  if (host.shared == nullptr || host.turn.on_ring(last_poll_)) return true;
  host.client->count(fabric::PortCounter::kDoorbellIgnored);
  return false;
}

bool Datapath::poll_one_armed(wire::Instant now) {
  if (one_armed_ == nullptr) return false;
  const bool sent = one_armed_->is_waiting() && one_armed_->send_waiting();
  if (!one_armed_is_active_) return sent;
  woken_.clear();
  const bool came = one_armed_->take_in(now, woken_);
  for (const std::size_t host : woken_) activate(host);
  if (came) {
    one_armed_idle_rounds_ = 0;
  } else if (++one_armed_idle_rounds_ >= HostTurn::kLooksUntilRest) {
    one_armed_idle_rounds_ = 0;
    one_armed_is_active_ = !one_armed_->arm();
  }
  return came || sent;
}

bool Datapath::take_from(Host& host, wire::Instant now) {
  if (!host.left_over.is_empty() && !drain(host, now)) return false;
  if (now < host.turn.resume()) return false;
  wire::Frame frame;
  Hop hop{host.uplink, {host.identity.host_index}};
  host.turn.begin();
  while (host.turn.has_credit() && !host.turn.is_held(now) && !uplink_is_busy(host, now) &&
         host.client->receive(frame)) {
    if (fabric::is_bulk_data(frame)) bulk_run_.took_frame();
    hop.origin.is_unanswered = host.turn.take(frame);
    transit_.transmit(frame, hop, now);
    release(frame);
    if (hop.origin.is_unanswered) pace(host, now);  // each copy counts
  }
  if (host.client->offence()) offend(host.identity.host_index);
  pace(host, now);
  const bool has_sent = host.turn.end(now);
  if (has_sent) contention_.sent(host.identity.host_index, now);
  return has_sent;
}

// Frames that a client sent before it ended are still delivered: a program may exit as soon as its
// last ACK is on the ring.
void Datapath::set_aside(Host& host) {
  wire::Frame frame;
  for (std::uint32_t n = 0; n < fabric::kFrameRing && host.client->receive(frame); ++n) {
    if (host.left_over.size() < fabric::kFrameRing) {
      host.left_over.push(frame);
    } else {
      host.client->count(fabric::PortCounter::kDropLeftOver);
      release(frame);
    }
  }
}

// They wait for the link and its pauses, as all others, but not for the host's budget: the next
// client may be another user's. So a flood can't evade its budget by attaching again and again.
// True: none is left, and the switch has learned of the end.
bool Datapath::drain(Host& host, wire::Instant now) {
  Hop hop{host.uplink, {host.identity.host_index}};
  while (!host.left_over.is_empty() && !uplink_is_busy(host, now)) {
    const wire::Frame frame = host.left_over.front();
    host.left_over.pop();
    hop.origin.is_unanswered = host.turn.unanswered().take(frame);
    if (hop.origin.is_unanswered && host.turn.is_held(now)) {
      host.client->count(fabric::PortCounter::kDropLeftOver);
    } else {
      transit_.transmit(frame, hop, now);
    }
    release(frame);
    if (hop.origin.is_unanswered) pace(host, now);
  }
  pace(host, now);
  if (!host.left_over.is_empty()) return false;
  if (host.is_leaving) leave(host, now);
  return true;
}

// Frames of the switch itself, and frames that answer the host's own, are not answers of other
// hosts. Except for results of a reduction: all members have contributed, whichever was the last.
void Datapath::note_answer(Host& host, const wire::Frame& frame, const Origin& origin) {
  UnansweredAccount& account = host.turn.unanswered();
  if (origin.worth == fabric::Worth::kResult) return account.on_result(frame);
  if (origin.worth != fabric::Worth::kAnswer || origin.host == fabric::kFabricItself) return;
  if (origin.host != host.identity.host_index) account.on_answer(frame);
}

// The receiver had no room for a frame. It will send no answer, so no answer pays for the frame:
// otherwise two hosts that flood each other would lose frames for free.
void Datapath::charge_refused(const wire::Frame& frame, const Origin& origin) {
  if (origin.host == fabric::kFabricItself || origin.is_unanswered) return;
  hosts_[origin.host].turn.unanswered().charge(frame);
}

// For each unpaid frame, the copies beyond the first.
void Datapath::charge_copies(fabric::SenderNo sender, wire::PortId ingress) {
  bool is_first = true;
  for (const fabric::Emit& emit : actions_.emits) {
    if (emit.origin != ingress) continue;
    if (std::exchange(is_first, false)) continue;
    UnansweredAccount& account = hosts_[sender].turn.unanswered();
    const bool is_copy = emit.worth == fabric::Worth::kAnswer;
    is_copy ? account.charge(emit.frame) : account.charge_result(emit.frame);
  }
}

// A host that has sent too many unanswered frames waits, if others send.
void Datapath::pace(Host& host, wire::Instant now) {
  const bool others_send = contention_.others_send(host.identity.host_index, now);
  const bool was_held = host.turn.is_held(now);
  if (host.turn.update_account(now, host.client->refused(), others_send) && !was_held) {
    host.client->count(fabric::PortCounter::kHeldBack);
  }
}

}  // namespace cepheus::live
