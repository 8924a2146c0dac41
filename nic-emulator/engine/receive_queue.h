// Source of a queue pair's receives: a queue of its own, or a shared one. A message holds one
// receive from the first packet that needs it to the last.
#pragma once

#include <cassert>

#include "nic-emulator/engine/port.h"
#include "nic-emulator/engine/shared_receive_queue.h"

namespace cepheus::rnic {

class ReceiveQueue {
 public:
  // `shared` may be null; it outlives this.
  ReceiveQueue(const QpContext& qp, SharedReceiveQueue* shared)
      : qp_(qp),
        shared_(shared),
        queue_(shared == nullptr ? qp.init.cap.max_recv_wr : 0,
               shared == nullptr ? qp.init.cap.max_recv_sge : 0, 0),
        held_sges_(shared == nullptr ? 0 : shared->init().max_sge) {
    if (shared_ != nullptr) shared_->join();
  }
  ~ReceiveQueue() {
    if (shared_ != nullptr) shared_->leave();
  }
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  bool is_shared() const { return shared_ != nullptr; }
  bool holds_shared() const { return holds_; }
  // Errors: kInvalid, kAgain (queue full).
  wire::Result<void> post(const RecvWr& wr) {
    if (shared_ != nullptr) {
      return wire::invalid("the qp uses a shared receive queue: post to that");
    }
    return post_receive(queue_, wr, qp_.init.cap.max_recv_sge);
  }

  // Holds a receive; keeps one that is already held. False: none was posted.
  bool hold(NicOutput& out) {
    if (shared_ == nullptr) return !queue_.empty();
    holds_ = holds_ || shared_->take(held_, held_sges_, out);
    return holds_;
  }
  bool can_complete() const { return shared_ == nullptr ? !queue_.empty() : holds_; }

  // Bytes of the held receive.
  std::uint64_t capacity() const { return held().length; }
  // False: its keys do not allow writing.
  bool place(std::uint64_t offset, std::span<const std::uint8_t> data) const {
    const auto sges = shared_ == nullptr ? queue_.sges(queue_.head())
                                         : std::span(held_sges_).first(held_.sge_count);
    return scatter(qp_.port.memory, shared_ == nullptr ? qp_.init.pd : shared_->init().pd, sges,
                   offset, data);
  }
  // Ends it: a message has arrived whole, with `bytes` in its buffer.
  Completion& complete_message(const wire::RoceHeaders& headers, std::uint64_t bytes,
                               NicOutput& out) {
    const wire::OpcodeInfo& info = opcode_info(headers.bth.opcode);
    Completion& c = complete(WcStatus::kSuccess, out);
    c.opcode = info.write ? WcOpcode::kRecvWriteImm : WcOpcode::kRecv;
    c.byte_len = static_cast<std::uint32_t>(bytes);
    c.solicited = headers.bth.solicited;
    c.has_imm = info.imm;
    c.imm = info.imm ? headers.imm.value : 0;
    return c;
  }
  Completion& complete(WcStatus status, NicOutput& out) {
    Completion& c = complete(held().wr_id, status, out);
    if (shared_ == nullptr) {
      queue_.pop();
    } else {
      holds_ = false;
    }
    return c;
  }
  Completion& complete(std::uint64_t wr_id, WcStatus status, NicOutput& out) const {
    Completion c;
    c.cq = qp_.init.recv_cq;
    c.owner = qp_.init.recv_owner;
    c.wr_id = wr_id;
    c.status = status;
    c.opcode = WcOpcode::kRecv;
    c.qpn = qp_.qpn;
    c.source_qpn = qp_.attr.remote_qpn;
    return out.completions.emplace_back(c);
  }

  // Completes its own receives as flushed; those of a shared queue serve others (IBTA 10.2.9.6).
  void flush(NicOutput& out) {
    while (can_complete()) complete(WcStatus::kFlush, out);
    if (shared_ != nullptr) {
      out.events.push_back({AsyncEventKind::kLastWqeReached, qp_.qpn, shared_->id()});
    }
  }
  void clear() {
    queue_.clear();
    holds_ = false;
  }

 private:
  const RecvWqe& held() const {
    assert(can_complete());
    return shared_ == nullptr ? queue_.front() : held_;
  }

  const QpContext& qp_;
  SharedReceiveQueue* const shared_;
  WorkQueue<RecvWqe> queue_;  // its own
  RecvWqe held_;              // taken from the shared one
  std::vector<Sge> held_sges_;
  bool holds_ = false;
};

}  // namespace cepheus::rnic
