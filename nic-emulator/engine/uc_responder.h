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
  // A request packet; `data` is its payload without pad. False: a receive failed, the QP must break
  // down.
  bool on_request(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                  NicOutput& out);
  void flush(NicOutput& out);

  Psn expected_psn() const { return expected_; }

 private:
  enum class Message : std::uint8_t { kNone, kSend, kWrite };  // whose later packets are expected

  bool may_continue(const wire::OpcodeInfo& info, bool in_sequence) const;
  std::optional<Counter> begin(const wire::RoceHeaders& headers, NicOutput& out);
  std::optional<Counter> place(const wire::OpcodeInfo& info, std::span<const std::uint8_t> data,
                               bool& failed);
  std::optional<Counter> place_write(bool last, std::span<const std::uint8_t> data);
  void complete(const wire::RoceHeaders& headers, NicOutput& out);
  void drop(Counter reason);

  const QpContext& qp_;
  Counters& counters_;
  ReceiveQueue& receives_;
  Psn expected_;
  Message message_ = Message::kNone;
  std::uint64_t offset_ = 0;  // bytes of the message placed so far
  wire::Reth write_;          // of the write in progress
};

}  // namespace cepheus::rnic
