// What sources have announced of WRITEs to the members behind this switch, until those have
// acknowledged them (docs/protocol.md, "Multicast WRITE": per-request).
//
// Kept by the PSN of the WRITE's first packet: go-back-N repeats announcements and WRITEs, out of
// step with what was announced since.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "switch-emulator/engine/switch.h"
#include "wire/announcement.h"

namespace cepheus::fabric {

// What a hardware table would hold of one.
struct Announced {
  Psn first;  // the group's, of the WRITE's first packet
  std::uint32_t rkey = 0;
  std::uint64_t virtual_address = 0;
  std::uint64_t length = 0;  // bytes from there on that may be written

  // Neither sum can wrap: a target ends within the address space.
  bool holds(std::uint64_t offset, std::uint32_t bytes) const {
    return offset <= length && bytes <= length - offset;
  }
};
static_assert(sizeof(Announced) == 24);

class Announcements {
 public:
  static constexpr std::size_t kMost = wire::Announcement::kMostUnderWay;  // of one member

  // False if there is no room: what lies up to `acked`, the member's, has been forgotten. One that
  // is noted again replaces itself.
  bool note(PortId port, const Announced& announced, Psn acked);
  // Null if there is none for that PSN.
  const Announced* find(PortId port, Psn first) const;
  // What was noted last, whatever its PSN (rule announced_by_psn off).
  const Announced* newest(PortId port) const;
  void remove(PortId port);
  // The turn is over: PSNs name other WRITEs.
  void clear();

  std::size_t table_bytes() const { return queues_.size() * sizeof(Queue); }
  template <typename IsMember>
  bool is_consistent(IsMember&& is_member) const {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      const Queue& queue = queues_[i];
      if (!is_member(queue.port) || queue.size > kMost) return false;
      if (i > 0 && !(queues_[i - 1].port < queue.port)) return false;
    }
    return true;
  }

 private:
  struct Queue {
    PortId port;
    std::uint16_t size = 0;
    std::uint16_t newest = 0;  // place of what was noted last, if there is any
    std::array<Announced, kMost> entries{};
  };
  std::size_t place_of(PortId port) const;
  const Queue* find_queue(PortId port) const;

  std::vector<Queue> queues_;  // by port
};

}  // namespace cepheus::fabric
