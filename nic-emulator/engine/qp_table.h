// The NIC's queue pairs by number: creation, look-up in O(1), numbers that are not reused soon.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "nic-emulator/engine/queue_pair.h"
#include "nic-emulator/engine/shared_receive_queue.h"

namespace cepheus::rnic {

// A QPN is a slot number, rotated by the seed, with the slot's generation above it. It is never 0
// or 1 (IBTA 3.5.3: QP0 and QP1 are special, and 1 is the virtual end of groups), nor a virtual QPN
// of sender groups (wire/sender_group.h).
class QpTable {
 public:
  QpTable(std::uint32_t max_qps, std::uint64_t seed);

  // `srq` may be null, and must outlive the QP. Returns null if all are in use.
  QueuePair* create(Port& port, const QpInit& init, SharedReceiveQueue* srq);
  void destroy(QueuePair& qp);

  QueuePair* find(Qpn qpn) const {
    const std::uint32_t index = (qpn.value() - first_slot_) & slot_mask_;
    if (index >= slots_.size()) return nullptr;
    QueuePair* qp = slots_[index].qp.get();
    return qp != nullptr && qp->qpn() == qpn ? qp : nullptr;
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.qp) visit(*slot.qp);
    }
  }

 private:
  struct Slot {
    std::unique_ptr<QueuePair> qp;
    Qpn qpn;  // last one given out
  };

  std::uint32_t max_qps_;
  std::uint32_t slot_mask_;
  std::uint32_t first_slot_;
  std::uint64_t seed_;
  std::vector<Slot> slots_;
  std::deque<std::uint32_t> free_slots_;  // longest unused first
};

// The NIC's shared receive queues by number.
class SrqTable {
 public:
  explicit SrqTable(std::uint32_t max_srqs) : max_srqs_(max_srqs) {}

  // Null if all are in use.
  SharedReceiveQueue* create(const SrqInit& init) {
    SrqId id = 0;
    while (id < queues_.size() && queues_[id]) ++id;
    if (id >= max_srqs_) return nullptr;
    if (id == queues_.size()) queues_.emplace_back();
    queues_[id] = std::make_unique<SharedReceiveQueue>(id, init);
    return queues_[id].get();
  }
  void destroy(SrqId id) { queues_[id].reset(); }
  SharedReceiveQueue* find(SrqId id) const {
    return id < queues_.size() ? queues_[id].get() : nullptr;
  }

 private:
  std::uint32_t max_srqs_;
  std::vector<std::unique_ptr<SharedReceiveQueue>> queues_;
};

}  // namespace cepheus::rnic
