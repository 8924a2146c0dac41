// Ring of work queue elements, fixed at creation: entries, their SGEs and their inline bytes lie in
// three arrays, so posting copies and never allocates (IBTA vol. 1, 10.8.1).
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nic-emulator/engine/verbs_types.h"

namespace cepheus::rnic {

// Positions count up for ever; position p lives in slot p modulo the ring's size.
template <typename Wqe>
class WorkQueue {
 public:
  WorkQueue(std::uint32_t capacity, std::uint32_t max_sge, std::uint32_t max_inline)
      : capacity_(capacity),
        mask_(std::bit_ceil(std::max(capacity, 1u)) - 1),
        max_sge_(max_sge),
        max_inline_(max_inline),
        entries_(mask_ + 1),
        sges_((mask_ + 1) * max_sge),
        inline_bytes_((mask_ + 1) * max_inline) {}

  bool empty() const { return head_ == tail_; }
  bool full() const { return tail_ - head_ >= capacity_; }
  std::uint64_t head() const { return head_; }
  std::uint64_t tail() const { return tail_; }

  const Wqe& at(std::uint64_t position) const {
    assert(position >= head_ && position < tail_);
    return entries_[position & mask_];
  }
  const Wqe& front() const { return at(head_); }
  std::span<const Sge> sges(std::uint64_t position) const {
    return {sges_.data() + (position & mask_) * max_sge_, at(position).sge_count};
  }
  const std::uint8_t* inline_bytes(std::uint64_t position) const {
    return inline_bytes_.data() + (position & mask_) * max_inline_;
  }

  // Preconditions: not full; at most max_sge elements.
  void push(Wqe entry, std::span<const Sge> sges) {
    assert(!full() && sges.size() <= max_sge_);
    entry.sge_count = static_cast<std::uint16_t>(sges.size());
    std::copy(sges.begin(), sges.end(), sges_.data() + (tail_ & mask_) * max_sge_);
    entries_[tail_++ & mask_] = entry;
  }
  // The same with space for inline data, which the caller fills; no SGE is kept.
  std::uint8_t* push_inline(Wqe entry) {
    assert(!full());
    entry.sge_count = 0;
    std::uint8_t* bytes = inline_bytes_.data() + (tail_ & mask_) * max_inline_;
    entries_[tail_++ & mask_] = entry;
    return bytes;
  }
  void pop() {
    assert(!empty());
    ++head_;
  }
  void pop_youngest() {
    assert(!empty());
    --tail_;
  }
  void clear() { head_ = tail_; }
  // Preconditions: at most `capacity` entries; none has inline data.
  void resize(std::uint32_t capacity) {
    WorkQueue other(capacity, static_cast<std::uint32_t>(max_sge_), 0);
    other.head_ = other.tail_ = head_;
    for (std::uint64_t p = head_; p != tail_; ++p) other.push(at(p), sges(p));
    *this = std::move(other);
  }

 private:
  std::uint64_t capacity_;
  std::uint64_t mask_;
  std::uint64_t max_sge_;
  std::uint64_t max_inline_;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
  std::vector<Wqe> entries_;
  std::vector<Sge> sges_;
  std::vector<std::uint8_t> inline_bytes_;
};

struct SendWqe {
  std::uint64_t wr_id = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint64_t first_packet = 0;  // the requester's packet number of the message's first packet
  std::uint32_t packets = 1;       // at least one: an empty message takes a packet; a READ takes
                                   // the numbers of its responses
  std::uint32_t length = 0;        // bytes of the message
  std::uint32_t rkey = 0;          // UD: the queue key
  std::uint32_t imm = 0;           // or the rkey to invalidate
  AddressVector destination;       // UD
  Qpn remote_qpn;
  std::uint16_t sge_count = 0;
  SendOp op = SendOp::kSend;
  bool signaled = false;
  bool solicited = false;
  bool inline_data = false;
  bool fence = false;
  WcStatus defect = WcStatus::kSuccess;  // else it fails with this status, and sends nothing

  bool is_defective() const { return defect != WcStatus::kSuccess; }
  std::uint64_t end_packet() const { return first_packet + packets; }
  bool is_write() const { return op == SendOp::kWrite || op == SendOp::kWriteImm; }
  bool is_atomic() const { return op == SendOp::kCompareSwap || op == SendOp::kFetchAdd; }
  bool is_fetch() const { return op == SendOp::kRead || is_atomic(); }  // a result comes back
  bool has_imm() const { return op == SendOp::kSendImm || op == SendOp::kWriteImm; }
};

struct RecvWqe {
  std::uint64_t wr_id = 0;
  std::uint64_t length = 0;  // bytes of all its SGEs
  std::uint16_t sge_count = 0;
};

}  // namespace cepheus::rnic
