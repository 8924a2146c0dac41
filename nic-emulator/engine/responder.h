// The responder half of a reliable connection: receive queue, placement of data, acknowledgements
// (IBTA vol. 1, 9.7.4, 9.7.5.1, 9.9.3).
//
// It owes the requester the results of READs and atomics, in order, and behind them at most one ACK
// or NAK. An ACK is built when it is sent, so it acknowledges all packets that have arrived by
// then. A NAK is sent once per gap.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "nic-emulator/engine/packet_out.h"
#include "nic-emulator/engine/port.h"
#include "nic-emulator/engine/receive_queue.h"
#include "nic-emulator/engine/reorder_buffer.h"
#include "nic-emulator/engine/responder_resources.h"
#include "wire/roce.h"

namespace cepheus::rnic {

class Responder {
 public:
  Responder(QpContext& context, ReceiveQueue& receives);

  void start(Psn first);  // INIT -> RTR
  void reset();

  // A request packet; `data` is its payload without pad. False: the QP must fail. A fatal NAK is
  // owed, but not for a key that can't be revoked.
  bool on_request(Instant now, const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                  NicOutput& out);
  // A NAK that waits (Manners::longest_nak_wait) leaves.
  void on_timer(Instant now) {
    if (now >= nak_leaves_) nak_leaves_ = wire::kNever;
  }
  Instant deadline() const { return nak_leaves_; }

  bool has_response() const {
    return owed_ != Owed::kNothing && results_.empty() && nak_leaves_ == wire::kNever;
  }
  // A gap was found, and the NIC sends a CNP for it (Manners::sends_cnp_after_loss).
  bool owes_cnp() const { return owes_cnp_; }
  void on_cnp_sent() { owes_cnp_ = false; }
  // `becn`: with a congestion notification.
  void build_response(wire::Frame& frame, bool becn);
  // Owes an ACK of all packets so far, requested or not, unless something else is owed.
  void acknowledge() { owe(Owed::kAck); }
  // The next READ response or atomic ACK. Precondition: has_result(). kFailed: the QP must fail (a
  // fatal NAK is owed).
  bool has_result() const { return !results_.empty(); }
  Build build_result(std::span<std::uint8_t> buffer, wire::Frame& frame, NicOutput& out);

  // Completes every receive as flushed. Only an owed ACK or fatal NAK remains; if a request has
  // failed, the results before it, too.
  void flush(NicOutput& out);

  Psn expected_psn() const { return expected_; }
  // As if that many messages of one packet had arrived and been acknowledged. Precondition:
  // is_idle().
  void jump(std::uint64_t packets);
  bool is_idle() const {
    return owed_ == Owed::kNothing && message_ == Message::kNone && results_.empty();
  }
  // Of the current message, and of the one before.
  std::uint32_t packets() const { return packets_; }
  std::uint32_t packets_before() const { return packets_before_; }
  void check_consistent() const;

 private:
  enum class Owed : std::uint8_t {
    kNothing,
    kAck,
    kDuplicateAck,  // of `duplicate_psn_` only
    kSequenceNak,
    kRnrNak,
    kFatalNak
  };
  enum class Message : std::uint8_t { kNone, kSend, kWrite };  // the message in progress

  // A PSN that lies this many steps back is the oldest that counts as a duplicate.
  static constexpr std::uint32_t kFarthestDuplicate = 1u << 23;
  // Last received PSN in the ACKs of a fresh queue pair of rdma_rxe.
  static constexpr std::uint32_t kStalePsn = 0xFFFFFF;

  void on_gap(Instant now, std::int32_t ahead, const wire::RoceHeaders& headers,
              std::span<const std::uint8_t> data);
  bool take(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data, NicOutput& out);
  bool is_in_place(const wire::OpcodeInfo& info, std::size_t length) const;
  bool execute(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
               NicOutput& out);
  bool place_send(std::span<const std::uint8_t> data, NicOutput& out);
  // Both return a refusal's code.
  std::optional<wire::NakCode> begin_write(const wire::Reth& reth);
  std::optional<wire::NakCode> place_write(std::span<const std::uint8_t> data, bool last);
  bool execute_fetch(const wire::RoceHeaders& headers, NicOutput& out);
  bool begin_read(const wire::RoceHeaders& headers, NicOutput& out);
  bool execute_atomic(const wire::RoceHeaders& headers, NicOutput& out);
  void on_duplicate(const wire::RoceHeaders& headers, std::uint32_t behind);
  void repeat_fetch(const wire::RoceHeaders& headers);
  Build lose_memory(const PendingResult& result, NicOutput& out);
  bool refuse_write(wire::NakCode code, bool has_receive, NicOutput& out);
  bool refuse(wire::NakCode code, NicOutput& out);  // fatal NAK and event; returns false
  bool refuse_receive(wire::NakCode code, WcStatus status,
                      NicOutput& out);  // ... and failed receive
  void owe(Owed response);

  QpContext& qp_;
  Counters& counters_;
  ReceiveQueue& receives_;
  Psn expected_;
  Psn stale_{kStalePsn};   // received last before a RESET
  std::uint32_t msn_ = 0;  // messages completed, 24 bits
  Owed owed_ = Owed::kNothing;
  wire::NakCode fatal_code_ = wire::NakCode::kInvalidRequest;
  bool has_failed_ = false;    // the QP must fail without a NAK
  bool is_fresh_ = true;       // no request yet
  bool has_sent_nak_ = false;  // no NAK for a gap until the expected packet comes
  Message message_ = Message::kNone;
  std::uint32_t packets_ = 0;         // of it
  std::uint32_t packets_before_ = 0;  // of the message before
  std::uint64_t offset_ = 0;          // bytes of the message placed so far
  wire::Reth write_;                  // of the write in progress
  Psn duplicate_psn_;
  // Packets executed since the last READ or atomic. It stops at half the circle: no duplicate lies
  // further back.
  std::uint32_t since_fetch_ = kFarthestDuplicate;
  ResponderResources results_;
  Instant nak_leaves_ = wire::kNever;  // a NAK is owed, and waits until then
  bool owes_cnp_ = false;
  std::unique_ptr<ReorderBuffer> held_;  // null unless the NIC keeps packets behind a gap
};

}  // namespace cepheus::rnic
