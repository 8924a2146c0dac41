// A queue pair's send queue: checks and copies a posted request, reads its bytes and completes it.
// The same for all services.
#pragma once

#include "nic-emulator/engine/port.h"
#include "nic-emulator/engine/work_queue.h"
#include "wire/bth.h"

namespace cepheus::rnic {

class SendQueue : public WorkQueue<SendWqe> {
 public:
  explicit SendQueue(const QpContext& qp);

  // Takes a copy of the request, and of inline data; `first_packet` is the number of its first
  // packet, the result one behind its last. Errors: kInvalid, kAgain (queue full). A request that
  // hardware detects as wrong only when it executes it fails in its turn (SendWqe::defect).
  wire::Result<std::uint64_t> post(const SendWr& wr, std::uint64_t first_packet);

  // Copies bytes of a message from `offset` on. False: its keys do not allow reading.
  bool read(std::uint64_t position, std::uint64_t offset, std::span<std::uint8_t> out) const;

  // Removes the oldest request, which has succeeded, and completes it if it is signaled.
  void finish_front(NicOutput& out);
  void complete_flushed(const SendWr& wr, NicOutput& out);
  // Completes and removes everything: the oldest with `first`, if given, all others flushed.
  void flush(std::optional<WcStatus> first, NicOutput& out);
  void clear() {
    WorkQueue::clear();
    silent_ = 0;
  }

 private:
  wire::Result<void> check(const SendWr& wr, std::uint64_t length) const;
  WcStatus defect_of(const SendWr& wr, std::uint64_t length) const;
  void complete(const SendWqe& wqe, WcStatus status, NicOutput& out);

  const QpContext& qp_;
  std::uint32_t silent_ = 0;  // requests that have ended since the last completion
};

// A SEND's or WRITE's opcode by the packet's place in the message, in RC's numbers.
wire::Opcode opcode_of(const SendWqe& wqe, bool first, bool last);

}  // namespace cepheus::rnic
