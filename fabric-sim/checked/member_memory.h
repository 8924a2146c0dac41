// The memory of one member: receive slots, its messages, and the region that others write to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric-sim/checked/group_ledger.h"
#include "fabric-sim/core/host.h"

namespace cepheus::sim {

class MemberMemory {
 public:
  // rkey of the region in WRITEs.
  static constexpr std::uint16_t kRegion = 7;
  static constexpr std::uint8_t kUntouched = 0xEE;  // of slots, before any data

  // The ledger fills the messages, and learns the region's address.
  MemberMemory(Host& host, GroupLedger& ledger, std::size_t index, std::uint32_t slots);
  // Precondition: its queue pair has been destroyed.
  void deregister();

  std::span<std::uint8_t> slot(std::size_t number) {
    return std::span(memory_).subspan(number * slot_size_, slot_size_);
  }
  rnic::Sge whole_slot(std::size_t number) const {
    return {number * slot_size_, static_cast<std::uint32_t>(slot_size_), lkey_};
  }
  rnic::Sge message(std::size_t number) const {
    return {message_at_[number], ledger_.plan().messages[number].bytes, lkey_};
  }
  // Writes an announcement of the message, a WRITE with another address at every member.
  rnic::Sge announcement(std::size_t message);

  // The region as published, and the first publication: another part of the same memory.
  wire::MrpRegion region() const { return region_at(kGuard); }
  wire::MrpRegion former_region() const { return region_at(0); }

 private:
  static constexpr std::size_t kGuard = 8192;  // bytes on each side of the region

  void allocate_messages(std::uint32_t slots);
  void allocate_region();
  wire::MrpRegion region_at(std::size_t offset) const {
    return {kRegion, region_key_, region_address_ + offset, ledger_.plan().region_bytes};
  }

  Host& host_;
  GroupLedger& ledger_;
  const std::size_t index_;
  const std::uint64_t region_address_;   // different at every member
  std::vector<std::uint8_t> memory_;     // slots, then this member's messages, announced
  std::vector<std::size_t> message_at_;  // offset of each own message
  std::vector<std::size_t> list_at_;     // ... and of its announcement
  std::size_t slot_size_ = 0;
  std::uint32_t lkey_ = 0, region_key_ = 0;
  std::vector<std::uint8_t> region_memory_;  // the region between two guards
};

}  // namespace cepheus::sim
