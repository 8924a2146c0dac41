// A drop that a group's leader has requested by PROBE, and what followed it (docs/protocol.md,
// "Probes"). It hurts the leader's own group alone, as a loss on the source's link does.
#pragma once

#include "switch-emulator/engine/switch.h"
#include "wire/probe.h"

namespace cepheus::fabric {

class DropOrder {
 public:
  // Replaces an order that has not been carried out.
  void request(const wire::DropRecord& order) {
    order_ = {order.kind, order.number, order_.drops};
    is_open_ = order.kind != wire::DropKind::kNone;
    is_watching_ = false;
    passed_ = 0;
  }
  // A host's data packet, in its own numbering. True: drop it.
  bool takes_data(Instant now, Psn psn, bool ends_message) {
    watch_for_repeat(now, psn);
    newest_ = psn;
    ends_message_ = ends_message;
    if (!is_open_) return false;
    const bool is_it = order_.kind == wire::DropKind::kLast
                           ? ends_message
                           : order_.kind == wire::DropKind::kPacket && passed_++ == order_.number;
    if (is_it) carry_out(now, psn);
    return is_it;
  }
  // A merged ACK to a host, up to `psn` in its numbering. True: drop it.
  bool takes_ack(Instant now, Psn psn) {
    const bool is_of_message = ends_message_ && psn == newest_;
    if (!is_open_ || order_.kind != wire::DropKind::kAck || !is_of_message) return false;
    carry_out(now, psn);
    return true;
  }
  // A receiver's NAK for a lost packet.
  void on_nak(Instant now) {
    if (is_watching_ && order_.nak_us == wire::DropRecord::kUnknown) order_.nak_us = since(now);
  }
  const wire::DropRecord& report() const { return order_; }

 private:
  void carry_out(Instant now, Psn psn) {
    is_open_ = false;
    is_watching_ = true;
    dropped_at_ = now;
    dropped_ = psn;
    if (order_.drops != 0xFFFF) ++order_.drops;
    order_.repeat_us = order_.nak_us = wire::DropRecord::kUnknown;
  }
  // After a dropped ACK its source repeats a packet that the ACK covered. Bound: the NIC's packets
  // under way are fewer than 2^23.
  void watch_for_repeat(Instant now, Psn psn) {
    if (!is_watching_ || order_.repeat_us != wire::DropRecord::kUnknown) return;
    const bool is_ack = order_.kind == wire::DropKind::kAck;
    if (is_ack ? distance(psn, dropped_) >= 0 : psn == dropped_) order_.repeat_us = since(now);
  }
  std::uint32_t since(Instant now) const {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now - dropped_at_);
    return static_cast<std::uint32_t>(
        std::min<std::int64_t>(us.count(), wire::DropRecord::kUnknown - 1));
  }

  wire::DropRecord order_;
  bool is_open_ = false;      // not carried out yet
  bool is_watching_ = false;  // carried out
  std::uint32_t passed_ = 0;  // data packets since the order
  Psn newest_;                // the last data packet that came, and whether it ended a message
  bool ends_message_ = false;
  Instant dropped_at_{};
  Psn dropped_;
};

}  // namespace cepheus::fabric
