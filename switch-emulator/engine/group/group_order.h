// An order of a group's leader, sent by PROBE, and its effects (docs/protocol.md, "Probes"). Only the
// leader's own group suffers: a drop resembles a loss on the source's link, a CNP resembles a mark in
// a queue.
#pragma once

#include <algorithm>
#include <utility>

#include "switch-emulator/engine/switch.h"
#include "wire/probe.h"

namespace cepheus::fabric {

class GroupOrder {
 public:
  // Replaces an order that has not been carried out.
  void request(const wire::OrderRecord& order) {
    report_.kind = order.kind;
    report_.number = order.number;
    report_.repeat_us = report_.nak_us = wire::OrderRecord::kUnknown;
    is_open_ = order.kind != wire::OrderKind::kNone;
    is_watching_ = false;
    passed_ = 0;
  }
  // A data packet that a host at `port` has sent, in its own numbering. True: drop it.
  bool takes_data(Instant now, PortId port, std::uint8_t tos, Psn psn, bool ends_message) {
    report_.tos = tos;
    count(port, psn);
    watch_for_repeat(now, psn);
    newest_ = psn;
    ends_message_ = ends_message;
    if (!is_open_) return false;
    const bool is_it =
        report_.kind == wire::OrderKind::kLast
            ? ends_message
            : report_.kind == wire::OrderKind::kPacket && passed_++ == report_.number;
    if (is_it) carry_out(now, psn);
    return is_it;
  }
  // A merged ACK to a host, up to `psn` in its numbering. True: drop it.
  bool takes_ack(Instant now, Psn psn) {
    const bool is_of_message = ends_message_ && psn == newest_;
    if (!is_open_ || report_.kind != wire::OrderKind::kAck || !is_of_message) return false;
    carry_out(now, psn);
    return true;
  }
  // A data packet of the leader. True: answer it with a CNP.
  bool takes_cnp() {
    if (!is_open_ || report_.kind != wire::OrderKind::kCnp) return false;
    is_open_ = passed_ < report_.number;
    if (!is_open_) return false;
    ++passed_;
    note_done();
    return true;
  }
  // A receiver's NAK for a lost packet.
  void on_nak(Instant now) {
    ++report_.naks;
    if (is_watching_ && report_.nak_us == wire::OrderRecord::kUnknown) report_.nak_us = since(now);
  }
  void on_rnr_nak() { ++report_.rnr_naks; }
  // Of a ring towards a member.
  void note_fill(std::uint8_t percent) { report_.fill = std::max(report_.fill, percent); }
  // Begins a new watch of the rings.
  wire::OrderRecord take_report() {
    const wire::OrderRecord report = report_;
    report_.fill = 0;
    return report;
  }

 private:
  void note_done() {
    if (report_.done != 0xFFFF) ++report_.done;
  }
  // Bound for both: a NIC's packets under way are fewer than 2^23. Each host numbers its own.
  void count(PortId port, Psn psn) {
    ++report_.packets;
    const bool is_same = std::exchange(counted_, port) == port;
    if (is_same && !after(psn, highest_)) {
      ++report_.repeats;
    } else {
      highest_ = psn;
    }
  }
  void carry_out(Instant now, Psn psn) {
    is_open_ = false;
    is_watching_ = true;
    dropped_at_ = now;
    dropped_ = psn;
    note_done();
    report_.repeat_us = report_.nak_us = wire::OrderRecord::kUnknown;
  }
  // After a dropped ACK its source repeats a packet that the ACK covered.
  void watch_for_repeat(Instant now, Psn psn) {
    if (!is_watching_ || report_.repeat_us != wire::OrderRecord::kUnknown) return;
    const bool is_ack = report_.kind == wire::OrderKind::kAck;
    if (is_ack ? distance(psn, dropped_) >= 0 : psn == dropped_) report_.repeat_us = since(now);
  }
  std::uint32_t since(Instant now) const {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now - dropped_at_);
    return static_cast<std::uint32_t>(
        std::min<std::int64_t>(us.count(), wire::OrderRecord::kUnknown - 1));
  }

  wire::OrderRecord report_;
  bool is_open_ = false;      // not carried out yet
  bool is_watching_ = false;  // carried out
  std::uint32_t passed_ = 0;  // data packets since the order
  PortId counted_;            // of the last data packet,
  Psn highest_;               // ... and the furthest of that host since others sent
  Psn newest_;                // the last data packet that came, and whether it ended a message
  bool ends_message_ = false;
  Instant dropped_at_{};
  Psn dropped_;
};

}  // namespace cepheus::fabric
