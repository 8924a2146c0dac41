// Buffer accounting of a switch with lossless links: one entry for each received frame, however
// many copies of it wait. The entry is released when the last copy is sent. Also decides which
// neighbours to pause. A part of FlowControl (net/flow_control.h).
#pragma once

#include <optional>
#include <vector>

#include "net/shared_buffer.h"

namespace cepheus::net {

struct IngressCounters {
  std::uint64_t pauses_sent = 0;       // not their repeats
  std::uint64_t dropped_headroom = 0;  // no headroom left: never happens if the headroom is right
};

class IngressBooks {
 public:
  using EntryId = std::uint32_t;
  static constexpr EntryId kNone = ~EntryId{0};

  // `slots`: payload slots that frames of one port may hold before its neighbour is paused; 0: any
  // number. A frame on the way has its slot already, so slots need no headroom. The other arguments
  // are SharedBuffer's.
  IngressBooks(const BufferConfig& config, const std::vector<wire::Bytes>& headroom,
               std::size_t slots = 0)
      : buffer_(config, headroom),
        most_slots_(slots),
        slots_(headroom.size()),
        counters_(headroom.size()) {}

  // False, and counted, if the buffer has no room for this frame from a lossless link.
  bool admit(wire::PortId port, wire::Bytes bytes) {
    if (buffer_.has_space(port, bytes)) return true;
    ++counters_[port.value()].dropped_headroom;
    return false;
  }
  // Opens the entry of a frame; the frame counts as one holder until leave(), each waiting copy as
  // one more. Preconditions: the port is lossless and admit() has returned true.
  EntryId open(wire::PortId port, wire::Bytes bytes, bool has_slot = false);
  void add_copy(EntryId entry) { ++entries_[entry].holders; }
  // The entry that a waiting copy out of `out` holds. A copy never goes back out of its ingress, so
  // a frame that does is the switch's own answer, and holds nothing. Otherwise two switches that
  // answer each other's data could each wait for the end of the other's pause.
  EntryId held_by(EntryId entry, wire::PortId out) const {
    return entry == kNone || entries_[entry].port == out ? kNone : entry;
  }
  // A copy no longer waits, or the frame has been handled.
  void leave(EntryId entry);

  struct PauseChange {
    wire::PortId port;
    bool pause = false;
  };
  // The neighbour to pause or to resume since the last leave(), if any.
  std::optional<PauseChange> take_change();

  const SharedBuffer& buffer() const { return buffer_; }
  IngressCounters totals() const;
  const IngressCounters& counters(wire::PortId port) const { return counters_[port.value()]; }
  bool is_empty() const { return buffer_.used() == 0 && open_entries() == 0; }
  std::size_t open_entries() const { return entries_.size() - free_.size(); }

 private:
  struct Entry {
    wire::PortId port;
    wire::Bytes bytes = 0;
    std::uint32_t holders = 0;
    bool has_slot = false;
  };
  bool lacks_slots(wire::PortId port) const;

  SharedBuffer buffer_;
  const std::size_t most_slots_;
  std::vector<std::size_t> slots_;  // in use, by port
  std::vector<IngressCounters> counters_;
  std::vector<Entry> entries_;
  std::vector<EntryId> free_;
  wire::PortId touched_;  // its use has changed since the last take_change()
};

}  // namespace cepheus::net
