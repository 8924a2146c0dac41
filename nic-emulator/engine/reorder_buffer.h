// Packets behind a gap that a receiver with selective repeat keeps until the gap is filled
// (Manners::keeps_behind_gap). All memory is allocated once, for packets of the path MTU.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "wire/roce.h"

namespace cepheus::rnic {

class ReorderBuffer {
 public:
  ReorderBuffer(std::uint32_t slots, std::uint32_t mtu)
      : mtu_(mtu), slots_(slots), bytes_(std::size_t{slots} * mtu) {}

  // `ahead`: steps from the expected PSN, at least 1. A packet too far ahead is not kept. Two kept
  // PSNs differ by less than the number of slots, so they never share one.
  void keep(std::int32_t ahead, const wire::RoceHeaders& headers,
            std::span<const std::uint8_t> data) {
    if (static_cast<std::uint32_t>(ahead) >= slots_.size() || data.size() > mtu_) return;
    const std::size_t at = place_of(headers.bth.psn);
    slots_[at] = {headers, static_cast<std::uint32_t>(data.size()), true};
    if (!data.empty()) std::memcpy(&bytes_[at * mtu_], data.data(), data.size());
    is_empty_ = false;
  }

  struct Packet {
    wire::RoceHeaders headers;
    std::span<const std::uint8_t> data;
  };
  // Removes and returns the packet with this PSN. Its bytes stay until the next keep().
  std::optional<Packet> take(wire::Psn psn) {
    if (is_empty_) return std::nullopt;
    const std::size_t at = place_of(psn);
    Slot& slot = slots_[at];
    if (!slot.is_kept || slot.headers.bth.psn != psn) return std::nullopt;
    slot.is_kept = false;
    return Packet{slot.headers, std::span(bytes_).subspan(at * mtu_, slot.length)};
  }
  void clear() {
    for (Slot& slot : slots_) slot.is_kept = false;
    is_empty_ = true;
  }

 private:
  struct Slot {
    wire::RoceHeaders headers;
    std::uint32_t length = 0;
    bool is_kept = false;
  };
  // The circle of PSNs has a power of two of them; so have the slots (nic.cc, within_limits).
  std::size_t place_of(wire::Psn psn) const { return psn.value() % slots_.size(); }

  std::uint32_t mtu_;
  bool is_empty_ = true;  // no packet was kept since clear()
  std::vector<Slot> slots_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace cepheus::rnic
