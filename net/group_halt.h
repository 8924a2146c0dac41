// Multicast data that waits where it came in while a port of its group is paused (Cepheus III-D): a
// line for each group and port that its data comes by.
//
// Behind a frame that waits, all later frames of the group wait that come by its port: order is
// kept. Frames that come by another port are copied to other ports, and may have to wait for less.
// In one line with them, frames on their way up a tree could hold frames on their way down, and be
// held by them. `free_at(group, port)` is the time when no port is paused to which the group copies
// frames that came by `port`, as far as is known; not after now: none is paused.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "net/fifo.h"
#include "wire/types.h"

namespace cepheus::net {

struct HaltCounters {
  std::uint64_t halts = 0;  // groups that began to wait, at each port that their data comes by
  wire::Duration time{0};   // that they waited, all together
};

template <typename Item>
class GroupHalt {
 public:
  // Ports of the switch.
  explicit GroupHalt(std::size_t ports) : counters_(ports) {}

  bool is_empty() const { return lines_.empty(); }
  // `port`: by which it came in.
  bool must_wait(wire::McstId group, wire::PortId port, wire::Instant now,
                 wire::Instant free_at) const {
    return free_at > now || find(group, port) != lines_.end();
  }
  void push(wire::McstId group, wire::PortId port, const Item& item, wire::Instant now) {
    auto at = lines_.begin() + (find(group, port) - lines_.cbegin());
    if (at == lines_.end()) {
      ++counters_[port.value()].halts;
      at = lines_.insert(at, {group, port, now, {}});
    }
    at->items.push(item);
  }
  // Takes out the first frame of the line that may go and has waited longest. Returns the port that
  // the frame came in by; nothing if no line may go.
  template <typename FreeAt>
  std::optional<wire::PortId> pop(wire::Instant now, Item& item, FreeAt&& free_at) {
    for (auto line = lines_.begin(); line != lines_.end(); ++line) {
      if (free_at(line->group, line->port) > now) continue;
      const wire::PortId port = line->port;
      item = line->items.front();
      line->items.pop();
      if (line->items.is_empty()) {
        counters_[port.value()].time += now - line->since;
        lines_.erase(line);
      }
      return port;
    }
    return std::nullopt;
  }
  // When some line may go, if no pause ends earlier; kNever if none waits.
  template <typename FreeAt>
  wire::Instant ready_at(FreeAt&& free_at) const {
    wire::Instant first = wire::kNever;
    for (const Line& line : lines_) first = std::min(first, free_at(line.group, line.port));
    return first;
  }

  // Of groups that waited at this port, halts that last included.
  HaltCounters counters(wire::PortId port, wire::Instant now) const {
    HaltCounters sum = counters_[port.value()];
    for (const Line& line : lines_) {
      if (line.port == port) sum.time += now - line.since;
    }
    return sum;
  }
  HaltCounters totals(wire::Instant now) const {
    HaltCounters sum;
    for (std::size_t p = 0; p < counters_.size(); ++p) {
      const HaltCounters at = counters(wire::PortId(static_cast<std::uint16_t>(p)), now);
      sum.halts += at.halts;
      sum.time += at.time;
    }
    return sum;
  }

 private:
  struct Line {
    wire::McstId group;
    wire::PortId port;
    wire::Instant since;
    Fifo<Item> items;
  };
  // Few groups are halted at a time.
  typename std::vector<Line>::const_iterator find(wire::McstId group, wire::PortId port) const {
    return std::find_if(lines_.begin(), lines_.end(),
                        [&](const Line& line) { return line.group == group && line.port == port; });
  }

  std::vector<Line> lines_;  // none is empty; in the order in which they began
  std::vector<HaltCounters> counters_;
};

}  // namespace cepheus::net
