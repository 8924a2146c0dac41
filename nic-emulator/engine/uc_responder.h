// The responder half of an unreliable connection: whole messages or nothing, no answers (IBTA vol.
// 1, 9.8.2).
#pragma once

#include "nic-emulator/engine/receive_queue.h"
#include "wire/roce.h"

namespace cepheus::rnic {

class UcResponder {
 public:
  UcResponder(const QpContext& context, ReceiveQueue& receives);

  void start(Psn first) { expected_ = first; }  // INIT -> RTR
  void reset();
  // A request packet; `data` is its payload without pad. False: a receive failed, and the QP must
  // fail.
  bool on_request(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                  NicOutput& out);
  void flush(NicOutput& out);

  Psn expected_psn() const { return expected_; }

 private:
  enum class Message : std::uint8_t { kNone, kSend, kWrite };  // the message in progress

  bool may_continue(const wire::OpcodeInfo& info, bool in_sequence) const;
  std::optional<Counter> take(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                              bool& failed, NicOutput& out);
  std::optional<Counter> begin(const wire::RoceHeaders& headers, NicOutput& out);
  std::optional<Counter> place(const wire::OpcodeInfo& info, std::span<const std::uint8_t> data,
                               bool& failed);
  void drop(Counter reason);

  const QpContext& qp_;
  Counters& counters_;
  ReceiveQueue& receives_;
  Psn expected_;
  Message message_ = Message::kNone;
  std::uint64_t offset_ = 0;  // bytes of the message placed so far
  wire::Reth write_;          // of the write in progress
};

// The responder half of unreliable datagrams: one packet, one receive, from any sender with the
// queue key (IBTA vol. 1, 9.8.3, Annex A17.4.5).
class UdResponder {
 public:
  UdResponder(const QpContext& context, ReceiveQueue& receives)
      : qp_(context), counters_(context.port.counters), receives_(receives) {}

  // `data` is the payload without pad. False: a receive failed, and the QP must fail.
  bool on_datagram(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                   NicOutput& out);

 private:
  std::optional<Counter> objection(const wire::RoceHeaders& headers, std::size_t bytes,
                                   NicOutput& out);

  const QpContext& qp_;
  Counters& counters_;
  ReceiveQueue& receives_;
};

}  // namespace cepheus::rnic
