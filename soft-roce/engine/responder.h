// The responder half of a reliable connection: receive queue, placement of data, acknowledgements
// (IBTA vol. 1, 9.7.4, 9.7.5.1, 9.9.3).
//
// It owes the requester at most one response at a time: an ACK is built when it leaves, so it
// acknowledges all that has arrived by then; a NAK is said once per gap.
#pragma once

#include <optional>
#include <span>

#include "libmcast/wire/roce.h"
#include "soft-roce/engine/port.h"
#include "soft-roce/engine/work_queue.h"

namespace cepheus::rnic {

class Responder {
 public:
  Responder(const QpContext& context, Counters& counters);

  void start(Psn first);  // INIT -> RTR
  void reset();
  // Errors: kInvalid, kAgain (queue full).
  wire::Result<void> post(const RecvWr& wr);

  // A request packet; `data` is its payload without pad. False: the QP must break down (a fatal NAK
  // is owed).
  bool on_request(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                  Actions& out);

  bool has_response() const { return owed_ != Owed::kNothing; }
  void build_response(wire::Frame& frame);

  // Completes every receive as flushed; only an ACK or fatal NAK that is owed remains.
  void flush(Actions& out);
  void complete_flushed(std::uint64_t wr_id, Actions& out) const;

  Psn expected_psn() const { return expected_; }
  void check_consistent() const;

 private:
  enum class Owed : std::uint8_t { kNothing, kAck, kSequenceNak, kRnrNak, kFatalNak };
  enum class Message : std::uint8_t { kNone, kSend, kWrite };  // whose later packets are expected

  bool is_in_place(const wire::OpcodeInfo& info, std::size_t length) const;
  bool execute(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data, Actions& out);
  bool place_send(std::span<const std::uint8_t> data, Actions& out);
  bool place_write(std::span<const std::uint8_t> data, bool last, Actions& out);
  bool begin_write(const wire::Reth& reth, Actions& out);
  void complete_receive(const wire::RoceHeaders& headers, Actions& out);
  void complete(const RecvWqe& wqe, WcStatus status, Actions& out) const;
  bool refuse(wire::NakCode code, Actions& out);  // fatal NAK and event; returns false
  bool refuse_receive(wire::NakCode code, WcStatus status, Actions& out);  // ... and failed receive
  void owe(Owed response);

  const QpContext& qp_;
  Counters& counters_;
  WorkQueue<RecvWqe> queue_;
  Psn expected_;
  std::uint32_t msn_ = 0;  // messages completed, 24 bits
  Owed owed_ = Owed::kNothing;
  wire::NakCode fatal_code_ = wire::NakCode::kInvalidRequest;
  bool said_nak_ = false;  // silent about gaps until the expected packet comes
  Message message_ = Message::kNone;
  std::uint64_t offset_ = 0;  // bytes of the message placed so far
  wire::Reth write_;          // of the write in progress
};

}  // namespace cepheus::rnic
