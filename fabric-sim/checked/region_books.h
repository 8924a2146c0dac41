// Expected content of the regions of a group's members: exactly the bytes that WRITEs name, and
// nothing around them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

class RegionBooks {
 public:
  // Content of memory before any WRITE, and on both sides of a region.
  static constexpr std::uint8_t kUntouched = 0xEE;
  // `fill(message, out)` generates a message's content.
  using Fill = std::function<void(std::size_t, std::span<std::uint8_t>)>;

  RegionBooks(const GroupPlan& plan, Fill fill) : plan_(plan), fill_(std::move(fill)) {}

  // The member's memory: [guard, guard + region_bytes) is its region. It outlives this object.
  void attach(std::size_t member, std::span<const std::uint8_t> memory, std::size_t guard);
  bool has_region(std::size_t member) const {
    return member < memory_.size() && !memory_[member].empty();
  }

  // Whether the member's region shows a WRITE: each byte is the WRITE's own, or that of a later
  // posted WRITE over this byte.
  bool shows(std::size_t member, std::size_t message, const std::vector<bool>& posted) const;
  // "", or the error in the memory of `member`. `is_whole`: all posted WRITEs have been written, in
  // order; else each byte may also have an older value.
  std::string check(std::size_t member, const std::vector<bool>& posted, bool is_whole) const;

 private:
  bool is_write_to(std::size_t message, std::size_t member, const std::vector<bool>& posted) const {
    const MessagePlan& m = plan_.messages[message];
    return posted[message] && m.is_write() && !m.outside && m.source != member;
  }

  const GroupPlan& plan_;
  const Fill fill_;
  std::vector<std::span<const std::uint8_t>> memory_;  // by member
  std::size_t guard_ = 0;
};

}  // namespace cepheus::sim
