// Multicast data that waits at its ingress port while a port of its group is paused (Cepheus
// III-D): one line for each group and ingress port.
//
// While one frame of a group waits, all later frames of the group from the same port wait behind
// it, so order is kept. Frames from another port are copied to other ports, and may have to wait
// for fewer. One line for all ports could deadlock: frames on their way up a tree would block
// frames on their way down, and these would block them.
//
// `free_at(group, port)` is the latest known end of a pause on any port to which the group copies
// frames from `port`. A time not after now means that none is paused.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "wire/fifo.h"
#include "wire/types.h"

namespace cepheus::net {

struct HaltCounters {
  std::uint64_t halts = 0;  // number of times that groups began to wait, by ingress port
  wire::Duration time{0};   // total time that they waited
};

template <typename Item>
class GroupHalt {
 public:
  explicit GroupHalt(std::size_t ports) : counters_(ports) {}

  bool is_empty() const { return lines_.empty(); }
  // `port`: the frame's ingress.
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
  // Takes the first frame out of the line that has waited longest, of those that may go on. Returns
  // the frame's ingress port; nothing if no line may go on.
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
  // When the first line may go on, if no pause ends earlier; kNever if none waits.
  template <typename FreeAt>
  wire::Instant ready_at(FreeAt&& free_at) const {
    wire::Instant first = wire::kNever;
    for (const Line& line : lines_) first = std::min(first, free_at(line.group, line.port));
    return first;
  }

  // Of groups that waited at this port, including halts that have not ended.
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
    wire::Fifo<Item> items;
  };
  // Few groups are halted at a time.
  typename std::vector<Line>::const_iterator find(wire::McstId group, wire::PortId port) const {
    return std::find_if(lines_.begin(), lines_.end(),
                        [&](const Line& line) { return line.group == group && line.port == port; });
  }

  std::vector<Line> lines_;  // none is empty; ordered by `since`
  std::vector<HaltCounters> counters_;
};

}  // namespace cepheus::net
