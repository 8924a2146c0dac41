// One queue pair: its state machine (IBTA vol. 1, 10.3.1) around a requester and a responder that
// are independent of each other. A group member's QP changes between both roles; neither role
// touches the other's PSNs. The type decides which requester and responder serve its two queues.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "nic-emulator/engine/intrusive_list.h"
#include "nic-emulator/engine/requester.h"
#include "nic-emulator/engine/responder.h"
#include "nic-emulator/engine/timer_heap.h"
#include "nic-emulator/engine/uc_responder.h"
#include "nic-emulator/engine/unreliable_requester.h"

namespace cepheus::rnic {

class QueuePair {
 public:
  // `srq` may be null.
  QueuePair(Port& port, Qpn qpn, const QpInit& init, SharedReceiveQueue* srq);

  Qpn qpn() const { return context_.qpn; }
  wire::Result<void> modify(const QpAttr& attr, std::uint32_t mask, NicOutput& out);
  QpAttr query() const;
  void fail(NicOutput& out);  // on an external error: to ERR, with an event
  bool holds_shared_receive() const { return receives_.holds_shared(); }

  // All of them or none.
  wire::Result<void> post_sends(std::span<const SendWr> wrs, NicOutput& out);
  wire::Result<void> post_recv(const RecvWr& wr, NicOutput& out);

  // `data` is the payload without pad.
  void on_packet(Instant now, const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                 NicOutput& out);
  void on_timer(Instant now, NicOutput& out);
  Instant deadline() const {
    const Instant own = std::min(requester_.deadline(), responder_.deadline());
    return waits_for_rate() && has_work() ? std::min(own, congestion_->deadline()) : own;
  }
  // Ends a wait for the rate that has become due. Before new work is checked; on_timer does so,
  // too.
  void resume(Instant now) {
    if (congestion_) congestion_->on_timer(now);
  }

  bool has_response() const { return responder_.has_response() || owes_cnp(); }
  void build_response(wire::Frame& frame);
  // Requests, and results of the peer's READs and atomics, in turns; not while the QP waits for its
  // rate.
  bool has_data() const { return has_work() && !waits_for_rate(); }
  Build build_data(Instant now, std::span<std::uint8_t> buffer, wire::Frame& frame, NicOutput& out);

  Bulk bulk() const {
    if (!is_rc() || context_.state == QpState::kErr) return Bulk::kNone;
    if (requester_.in_flight() >= kBulk || responder_.packets() >= kBulk) return Bulk::kAmid;
    return responder_.packets_before() >= kBulk ? Bulk::kBetween : Bulk::kNone;
  }
  // See Nic.
  bool is_quiet() const {
    if (!is_rc() || context_.state != QpState::kRts) return true;
    return bulk() == Bulk::kNone && requester_.in_flight() <= kFew &&
           requester_.awaits_acks_alone() && !responder_.has_result();
  }
  std::optional<CongestionState> congestion(Instant now) const;
  bool jump(std::uint64_t sent, std::uint64_t received);  // see Nic
  void check_consistent() const;

  // Links in the NIC's lists; only the NIC uses them.
  ListHook<QueuePair> response_hook;
  ListHook<QueuePair> data_hook;
  TimerSlot timer;

 private:
  static constexpr std::uint32_t kBulk = 96, kFew = 32;  // packets

  QpType type() const { return context_.init.type; }
  bool owes_cnp() const {
    return responder_.owes_cnp() || (congestion_ && congestion_->owes_cnp());
  }
  bool is_rc() const { return type() == QpType::kRc; }
  bool has_work() const { return can_send() || responder_.has_result(); }
  bool waits_for_rate() const { return congestion_ && congestion_->waits(); }
  bool can_send() const { return is_rc() ? requester_.can_send() : unreliable_.can_send(); }
  wire::Result<void> post_send(const SendWr& wr, NicOutput& out);
  void set_state(QpState state, const char* reason);
  bool can_receive() const;
  bool may_enter(const wire::RoceHeaders& headers);
  void apply(const QpAttr& attr, std::uint32_t mask);
  void make_envelope();
  void on_unreliable_packet(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                            NicOutput& out);
  void on_response(Instant now, const wire::RoceHeaders& headers,
                   std::span<const std::uint8_t> data, NicOutput& out);
  void note_congestion(Instant now, const wire::RoceHeaders& headers);
  void build_cnp(wire::Frame& frame);
  Build build_packet(Instant now, std::span<std::uint8_t> buffer, wire::Frame& frame,
                     NicOutput& out);
  void note_established(NicOutput& out);
  void start_receiving(Psn first);
  void start_sending(Psn first);
  void reset();
  // To ERR: completes and flushes both queues.
  void enter_error(std::optional<WcStatus> oldest_send, const char* reason, NicOutput& out);
  bool is_drained() const { return is_rc() ? requester_.drained() : unreliable_.drained(); }
  void finish_requester(NicOutput& out);  // enters ERR or reports drained, if due

  // Null unless the NIC has congestion control. Here because it is read as often as the hooks.
  std::unique_ptr<QpCongestion> congestion_;
  QpContext context_;
  SendQueue sends_;
  ReceiveQueue receives_;
  Requester requester_;             // RC
  Responder responder_;             // RC
  UnreliableRequester unreliable_;  // UC and UD
  UcResponder uc_responder_;
  UdResponder ud_responder_;
  const char* reason_ = "created";  // of the last change of state
  bool has_received_ = false;       // a packet has come since RTR
  bool result_is_next_ = false;
  bool owes_drained_ = false;        // the event
  bool was_connected_ = false;       // it has been in RTR
  Psn first_received_, first_sent_;  // as set with RTR and RTS
};

}  // namespace cepheus::rnic
