// Sources' announcements of WRITEs to the members behind this switch, kept until these members have
// acknowledged them (docs/protocol.md, "Multicast WRITE": per-request).
//
// The key is the place of the WRITE's first packet in the turn, because go-back-N repeats
// announcements and WRITEs after later announcements. Places have 64 bits (Turn::place_of): a turn
// may go on for 2^23 packets and more without another announcement. By PSN an old one would then
// seem to be ahead, and would never be deleted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "switch-emulator/engine/switch.h"
#include "wire/announcement.h"

namespace cepheus::fabric {

// Fields of one entry in a hardware table.
struct Announced {
  std::int64_t first = 0;  // place in the turn of the WRITE's first packet
  std::uint64_t virtual_address = 0;
  std::uint64_t length = 0;  // writable bytes from there on
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

  // False if the queue is full. `acked` is the place up to which the member has acknowledged: older
  // entries have been deleted. A repeated announcement replaces the first.
  bool note(PortId port, const Announced& announced, std::int64_t acked);
  // Null if there is none for that place.
  const Announced* find(PortId port, std::int64_t first) const;
  // The newest announcement, at any place (rule announced_by_psn off).
  const Announced* newest(PortId port) const;
  void remove(PortId port);
  // The turn is over: its places would name other WRITEs.
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
    std::uint16_t newest = 0;  // place of the newest announcement, if there is any
    std::array<Announced, kMost> entries{};
  };
  std::size_t place_of(PortId port) const;
  const Queue* find_queue(PortId port) const;

  std::vector<Queue> queues_;  // by port
};

}  // namespace cepheus::fabric
