// The requester half of a reliable connection: send queue, window, retransmission (IBTA vol.
// 1, 9.7.3 to 9.7.5, 9.9.2).
//
// Packets are counted from 0 at RTS in 64 bits; PSNs are the low 24 bits over the start PSN:
//
//     una          next         sent         posted
//      |  in flight  |  to resend |  not sent yet |
//
// An acknowledgement counts only for [una, sent): one of an unsent packet is ignored.
//
// A READ takes as many packet numbers as it has response packets. It is requested in pieces of at
// most half a window, each a READ request of its own. So responses in flight are bounded as sends
// are, and a lost one costs a piece, not the message. Pieces have fixed boundaries, so a repeated
// READ never extends past the end of the first request.
#pragma once

#include <optional>
#include <span>

#include "nic-emulator/engine/packet_out.h"
#include "nic-emulator/engine/port.h"
#include "nic-emulator/engine/send_queue.h"
#include "wire/extension_headers.h"
#include "wire/frame.h"

namespace cepheus::rnic {

class Requester {
 public:
  Requester(QpContext& context, SendQueue& queue);

  void start(Psn first);  // RTR -> RTS
  void reset();
  // Errors: see SendQueue.
  wire::Result<void> post(const SendWr& wr);
  // Undoes the last post(). Precondition: nothing was built since.
  void take_back();

  bool can_send() const;
  // Builds the next packet. Precondition: can_send(). kFailed: local memory could not be read;
  // `failure()` may have a value now.
  Build build(Instant now, std::span<std::uint8_t> buffer, wire::Frame& frame);

  void on_ack(Instant now, Psn psn, const wire::Aeth& aeth, NicOutput& out);
  // A READ response or atomic ACK; `data` is its payload without pad.
  void on_result(Instant now, const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                 NicOutput& out);
  void on_timer(Instant now);
  Instant deadline() const { return waits_for_receiver_ ? rnr_deadline_ : ack_deadline_; }

  // Set when the oldest request can't complete: the QP must fail with this status.
  std::optional<WcStatus> failure() const;
  // Completes everything queued: the oldest request with `first`, if given, all others flushed.
  void flush(std::optional<WcStatus> first, NicOutput& out);

  // SQD: messages already begun end, no new ones begin.
  void drain();
  void undrain() { drain_limit_.reset(); }
  bool drained() const { return drain_limit_ && una_ == *drain_limit_; }

  Psn next_psn() const { return psn_of(sent_); }
  // As if that many more packets had been sent and acknowledged. Precondition: is_idle().
  void jump(std::uint64_t packets);
  bool is_idle() const { return queue_.empty(); }
  std::uint64_t in_flight() const { return next_ - una_; }  // packets
  // All posted packets have been sent; only acknowledgements are outstanding.
  bool awaits_acks_alone() const {
    return next_ == posted_ && fetches_in_flight_ == 0 && !waits_for_receiver_ && !probing_;
  }
  void check_consistent() const;

 private:
  // Clears the state of requests in flight and of faults.
  void forget_progress();
  std::uint64_t window() const;
  std::uint64_t read_piece() const;
  std::uint32_t ack_every() const;
  bool may_begin() const;
  Build build_fetch(Instant now, const SendWqe& wqe, wire::Frame& frame);
  void on_sent(Instant now, std::uint64_t packets, bool requests_ack);
  std::optional<std::uint64_t> packet_of(Psn psn);
  Psn psn_of(std::uint64_t packet) const {
    return first_psn_ + static_cast<std::int64_t>(packet & Psn::kMask);
  }
  std::uint64_t acknowledged_end(std::uint64_t packet, std::uint32_t msn) const;
  bool advance_to(Instant now, std::uint64_t una, NicOutput& out);
  void on_progress(Instant now);
  void on_missing_result(std::uint64_t packet, bool is_result = false);
  std::optional<WcStatus> place_result(const wire::RoceHeaders& headers, std::uint64_t packet,
                                       std::span<const std::uint8_t> data) const;
  void on_rnr_nak(Instant now, std::uint64_t packet, std::uint8_t timer, NicOutput& out);
  void on_nak(Instant now, std::uint64_t packet, std::uint8_t code, NicOutput& out);
  void go_back();
  void spend_retry();
  void restart_timer(Instant now);
  Duration ack_timeout();

  QpContext& qp_;
  Counters& counters_;
  SendQueue& queue_;
  // The NIC reads these fields after every packet of any QP, so they lie together.
  bool probing_ = false;  // one packet at a time, from an RNR wait or a time-out to the next answer
  bool waits_for_receiver_ = false;         // RNR wait
  bool local_failure_ = false;              // packet `next_` could not be built
  std::optional<WcStatus> oldest_failure_;  // the oldest request can't complete
  std::uint64_t una_ = 0;                   // oldest packet not acknowledged
  std::uint64_t next_ = 0;                  // next packet to send
  std::uint64_t posted_ = 0;                // one behind the last packet of the last message
  std::uint64_t requested_end_ = 0;         // one behind the newest AckReq in flight, if above una_
  std::optional<std::uint64_t> drain_limit_;
  Instant rnr_deadline_ = wire::kNever;
  Instant ack_deadline_ = wire::kNever;
  Psn first_psn_;
  std::uint64_t sent_ = 0;                 // one behind the last packet ever sent
  std::uint64_t cursor_ = 0;               // queue position of the message that `next_` belongs to
  std::uint32_t fetches_in_flight_ = 0;    // READ requests and atomics within [una, next)
  std::uint64_t often_until_ = 0;          // packet; AckReq is more frequent before it
  int missed_results_ = 0;                 // requests for `una_` again, since the last progress
  std::uint64_t last_behind_missing_ = 0;  // packet of the last response behind a missing result
  std::optional<std::uint64_t> nak_packet_;  // packet that the last sequence NAK names
  std::uint64_t origin_ = 0;                 // queue position of the message that MSN 1 counts
  std::uint8_t retries_left_ = 0;
  std::uint8_t rnr_retries_left_ = 0;
  unsigned timeouts_in_a_row_ = 0;
};

}  // namespace cepheus::rnic
