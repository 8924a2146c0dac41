// Members that were taken out, until the switches that they were at have confirmed it
// (docs/protocol.md, "Members that die or stall").
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "wire/mrp.h"
#include "wire/types.h"

namespace cepheus::mrp {

class Evictions {
 public:
  void add(wire::Instant now, const wire::MrpMember& gone, wire::Duration first_retry,
           unsigned repeats) {
    list_.push_back(gone);
    retry_ = first_retry;
    repeats_left_ = repeats;
    next_ = now;
  }
  void on_confirmed(std::span<const wire::MrpMember> confirmed) {
    for (const wire::MrpMember& member : confirmed) std::erase(list_, member);
    if (list_.empty()) stop();
  }
  // Whom EVICT is to name now; nobody any more once the repeats are used up.
  std::span<const wire::MrpMember> take_due(wire::Instant now, wire::Duration longest_retry) {
    if (repeats_left_ == 0) list_.clear();
    stop();
    if (list_.empty()) return {};
    --repeats_left_;
    next_ = now + retry_;
    retry_ = std::min(2 * retry_, longest_retry);
    return list_;
  }
  void stop() { next_ = wire::kNever; }
  wire::Instant deadline() const { return next_; }

 private:
  std::vector<wire::MrpMember> list_;
  wire::Instant next_ = wire::kNever;
  wire::Duration retry_{0};
  unsigned repeats_left_ = 0;
};

}  // namespace cepheus::mrp
