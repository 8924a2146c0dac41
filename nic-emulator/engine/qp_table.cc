// The table adds slots until kRestingQps of them are free, or there are max_qps. Then it reuses the
// slot that was free longest, with the next generation in the number. So packets for a destroyed
// queue pair find no other one until the generations wrap.
#include "nic-emulator/engine/qp_table.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "wire/sender_group.h"
#include "wire/splitmix.h"

namespace cepheus::rnic {
namespace {

// The table grows until this many slots are free. Then the slot that was free longest is reused.
constexpr std::size_t kRestingQps = 64;

// Excludes the virtual QPNs of groups and sender groups.
bool can_be_given(Qpn qpn) {
  return qpn > wire::kVirtualQpn && qpn.value() < wire::kFirstSenderGroupQpn;
}

}  // namespace

QpTable::QpTable(std::uint32_t max_qps, std::uint64_t seed)
    : max_qps_(std::clamp(max_qps, 1u, 1u << 22)),
      slot_mask_(std::bit_ceil(max_qps_) - 1),
      first_slot_(static_cast<std::uint32_t>(wire::splitmix(seed, 0)) & slot_mask_),
      seed_(seed) {}

QueuePair* QpTable::create(Port& port, const QpInit& init, SharedReceiveQueue* srq) {
  std::uint32_t index = 0;
  if (slots_.size() < max_qps_ && free_slots_.size() < kRestingQps) {
    index = static_cast<std::uint32_t>(slots_.size());
    const std::uint32_t slot = (index + first_slot_) & slot_mask_;
    const auto generation =
        static_cast<std::uint32_t>(wire::splitmix(seed_, index + 1)) & ~slot_mask_;
    slots_.push_back({nullptr, Qpn(generation | slot)});
  } else if (!free_slots_.empty()) {
    index = free_slots_.front();
    free_slots_.pop_front();
  } else {
    return nullptr;
  }
  Slot& slot = slots_[index];
  do {
    slot.qpn = Qpn(slot.qpn.value() + slot_mask_ + 1);  // next generation
  } while (!can_be_given(slot.qpn));
  slot.qp = std::make_unique<QueuePair>(port, slot.qpn, init, srq);
  return slot.qp.get();
}

void QpTable::destroy(QueuePair& qp) {
  assert(find(qp.qpn()) == &qp);
  const std::uint32_t index = (qp.qpn().value() - first_slot_) & slot_mask_;
  slots_[index].qp.reset();
  free_slots_.push_back(index);
}

}  // namespace cepheus::rnic
