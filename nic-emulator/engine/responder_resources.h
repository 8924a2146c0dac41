// A responder's state for READs and atomics: results still to be sent, in the order of their
// requests, and the results of the last atomics for repeated requests (IBTA vol. 1, 9.7.4.1.7,
// 9.4.5.1).
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <optional>

#include "nic-emulator/engine/verbs_types.h"

namespace cepheus::rnic {

// A READ or its rest, or an executed atomic.
struct PendingResult {
  Psn psn;                    // of its next response packet
  std::uint32_t packets = 1;  // still to be sent
  bool atomic = false;
  bool begun = false;         // its first packet is sent
  bool repeated = false;      // the request is a duplicate
  std::uint64_t address = 0;  // READ: of the unread rest
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  std::uint64_t original = 0;  // atomic
  std::uint32_t msn = 0;       // messages completed with this one, 24 bits
};

class ResponderResources {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  PendingResult& front() {
    assert(!empty());
    return pending_[head_];
  }
  PendingResult& back() {
    assert(!empty());
    return pending_[(head_ + size_ - 1) % pending_.size()];
  }
  // Precondition: fewer than kMaxRdAtomic are pending.
  void push(const PendingResult& result) {
    assert(size_ < pending_.size());
    pending_[(head_ + size_++) % pending_.size()] = result;
  }
  void pop() {
    assert(!empty());
    head_ = (head_ + 1) % pending_.size();
    --size_;
  }
  bool full() const { return size_ == pending_.size(); }
  void clear_pending() { size_ = 0; }
  // Drops the results with a next packet at `psn` or behind it. False: there was none.
  // A requester has at most 2^23 PSNs in flight, so all of them lie within 2^23 of `psn`. One that
  // breaks this rule loses its own results.
  bool drop_from(Psn psn) {
    const std::size_t before = size_;
    while (size_ != 0 && distance(psn, back().psn) >= 0) --size_;
    return size_ != before;
  }

  // Whether the response packet `psn` is still to be sent.
  bool covers(Psn psn) const {
    for (std::size_t i = 0; i < size_; ++i) {
      const PendingResult& p = pending_[(head_ + i) % pending_.size()];
      // A READ has at most 2^23 packets (kMaxMessage at the smallest MTU), so the whole of it lies
      // within 2^23 of its next one. A PSN outside counts as negative, or as too large.
      const std::int32_t index = distance(p.psn, psn);
      if (index >= 0 && static_cast<std::uint32_t>(index) < p.packets) return true;
    }
    return false;
  }

  // One result a PSN: 2^24 packets later a PSN names another atomic.
  void remember(Psn psn, std::uint64_t original) {
    for (auto& atomic : atomics_) {
      if (atomic && atomic->psn == psn) atomic.reset();
    }
    atomics_[next_atomic_] = {psn, original};
    next_atomic_ = (next_atomic_ + 1) % atomics_.size();
  }
  std::optional<std::uint64_t> recall(Psn psn) const {
    for (const auto& atomic : atomics_) {
      if (atomic && atomic->psn == psn) return atomic->original;
    }
    return std::nullopt;
  }

  void clear() { *this = {}; }

 private:
  struct Atomic {
    Psn psn;
    std::uint64_t original;
  };

  // Read for every packet, so it lies beside the fields that the responder's packets touch.
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  std::array<PendingResult, kMaxRdAtomic> pending_;
  std::array<std::optional<Atomic>, kMaxRdAtomic> atomics_;
  std::size_t next_atomic_ = 0;
};

}  // namespace cepheus::rnic
