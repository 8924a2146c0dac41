// What sources have announced of WRITEs to the members behind this switch, until those have
// acknowledged them (docs/protocol.md, "Multicast WRITE": per-request).
//
// Kept by the place of the WRITE's first packet in the turn: go-back-N repeats announcements and
// WRITEs, out of step with what was announced since. Places have 64 bits (Turn::place_of): a turn may
// go on for 2^23 packets and more without another announcement, and by PSN an old one would then
// seem to lie ahead, and fill the room for ever.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "switch-emulator/engine/switch.h"
#include "wire/announcement.h"

namespace cepheus::fabric {

// What a hardware table would hold of one.
struct Announced {
  std::int64_t first = 0;  // place in the turn of the WRITE's first packet
  std::uint64_t virtual_address = 0;
  std::uint64_t length = 0;  // bytes from there on that may be written
  std::uint32_t rkey = 0;

  // Neither sum can wrap: a target ends within the address space.
  bool holds(std::uint64_t offset, std::uint32_t bytes) const {
    return offset <= length && bytes <= length - offset;
  }
};
static_assert(sizeof(Announced) == 32);

class Announcements {
 public:
  static constexpr std::size_t kMost = wire::Announcement::kMostUnderWay;  // of one member

  // False if there is no room: what lies up to `acked`, the place of the member's, has been
  // forgotten. One that is noted again replaces itself.
  bool note(PortId port, const Announced& announced, std::int64_t acked);
  // Null if there is none for that place.
  const Announced* find(PortId port, std::int64_t first) const;
  // What was noted last, whatever its place (rule announced_by_psn off).
  const Announced* newest(PortId port) const;
  void remove(PortId port);
  // The turn is over: places name other WRITEs.
  void clear();

  std::size_t allocated_bytes() const { return queues_.capacity() * sizeof(Queue); }
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
