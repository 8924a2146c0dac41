#include "fabric-sim/checked/member_memory.h"

#include <algorithm>

#include "fabric-sim/core/connection.h"

namespace cepheus::sim {

MemberMemory::MemberMemory(Host& host, GroupLedger& ledger, std::size_t index, std::uint32_t slots)
    : host_(host),
      ledger_(ledger),
      index_(index),
      region_address_(0x100000 * (index + 1) + 0x10 * index) {
  allocate_messages(slots);
  if (ledger_.plan().region_bytes > 0) allocate_region();
}

void MemberMemory::allocate_messages(std::uint32_t slots) {
  const GroupPlan& plan = ledger_.plan();
  for (const MessagePlan& m : plan.messages)
    slot_size_ = std::max<std::size_t>(slot_size_, m.bytes);
  std::size_t size = slot_size_ * slots;
  for (const MessagePlan& m : plan.messages) {
    message_at_.push_back(size);
    if (m.source == index_) size += m.bytes;
    list_at_.push_back(size);
    if (m.source == index_ && plan.is_announced) {
      size += wire::Announcement::size_of(plan.members.size());
    }
  }
  memory_.assign(size + 1, kUntouched);  // registered memory is never empty
  for (std::size_t m = 0; m < plan.messages.size(); ++m) {
    if (plan.messages[m].source != index_) continue;
    ledger_.fill(m, std::span(memory_).subspan(message_at_[m], plan.messages[m].bytes));
  }
  // This address space starts at 0, so that the trace does not depend on the allocator.
  lkey_ = open_memory(host_, memory_).lkey;
}

// The NIC allows WRITEs to all of it: only switches know the region's end.
void MemberMemory::allocate_region() {
  region_memory_.assign(2 * kGuard + ledger_.plan().region_bytes, RegionBooks::kUntouched);
  region_key_ =
      require(host_.nic().register_memory(1, region_memory_.data(), region_memory_.size(),
                                          region_address_, rnic::kLocalWrite | rnic::kRemoteWrite))
          .rkey;
  ledger_.regions().attach(index_, region_memory_, kGuard);
  ledger_.targets()[index_] = {host_.address(), region_key_, region_address_ + kGuard,
                               ledger_.plan().region_bytes};
}

rnic::Sge MemberMemory::announcement(std::size_t message) {
  std::vector<wire::AnnouncedTarget> targets = ledger_.targets();
  for (wire::AnnouncedTarget& target : targets) {
    target.virtual_address += ledger_.plan().messages[message].offset;
    target.length -= ledger_.plan().messages[message].offset;
  }
  const std::size_t bytes =
      wire::Announcement::emit(targets, std::span(memory_).subspan(list_at_[message]));
  return {list_at_[message], static_cast<std::uint32_t>(bytes), lkey_};
}

void MemberMemory::deregister() {
  host_.nic().deregister_memory(lkey_);
  if (region_key_ != 0) host_.nic().deregister_memory(region_key_);
}

}  // namespace cepheus::sim
