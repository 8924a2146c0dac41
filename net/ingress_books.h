// What a switch with lossless links holds: one entry for each frame that came in, however many copies
// of it wait, released when the last of them is on its way. And which neighbours are to be paused: a
// part of FlowControl (net/flow_control.h).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "net/shared_buffer.h"

namespace cepheus::net {

struct IngressCounters {
  std::uint64_t pauses_sent = 0;       // not their repeats
  std::uint64_t dropped_headroom = 0;  // no headroom left: what lossless links must never see
};

class IngressBooks {
 public:
  using EntryId = std::uint32_t;
  static constexpr EntryId kNone = ~EntryId{0};

  // As SharedBuffer.
  IngressBooks(const BufferConfig& config, const std::vector<wire::Bytes>& headroom)
      : buffer_(config, headroom), counters_(headroom.size()) {}

  // False, and counted, if a frame from a lossless link has to be dropped.
  bool admit(wire::PortId port, wire::Bytes bytes) {
    if (buffer_.has_room(port, bytes)) return true;
    ++counters_[port.value()].dropped_headroom;
    return false;
  }
  // A frame that is being handled holds its entry, as each copy that waits does. Preconditions: the
  // port is lossless and admit() has said yes.
  EntryId open(wire::PortId port, wire::Bytes bytes);
  void add_copy(EntryId entry) { ++entries_[entry].holders; }
  // What a frame that is to leave by `out` holds in the buffer while it waits, made from the entry's: no
  // copy goes back where the frame came from, so that this is an answer of the switch's own. It holds
  // nothing: two switches that answer each other's data would each wait for the other's pause to end.
  EntryId held_by(EntryId entry, wire::PortId out) const {
    return entry == kNone || entries_[entry].port == out ? kNone : entry;
  }
  // A copy does not wait any more, or the frame has been handled.
  void leave(EntryId entry);

  struct PauseChange {
    wire::PortId port;
    bool pause = false;
  };
  // The neighbour that has to be told something new since the last leave(), if any.
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
  };

  SharedBuffer buffer_;
  std::vector<IngressCounters> counters_;
  std::vector<Entry> entries_;
  std::vector<EntryId> free_;
  wire::PortId touched_;  // whose use has changed and who was not looked at since
};

}  // namespace cepheus::net
