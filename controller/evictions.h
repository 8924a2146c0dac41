// Members that were taken out, until the switches that they were at have confirmed it
// (docs/protocol.md, "Members that die or stall").
#pragma once

#include <span>
#include <vector>

#include "controller/backoff.h"
#include "wire/mrp.h"
#include "wire/types.h"

namespace cepheus::mrp {

class Evictions {
 public:
  void add(wire::Instant now, const wire::MrpMember& gone, Pace pace) {
    list_.push_back(gone);
    repeat_ = Backoff(pace, now);
  }
  void on_confirmed(std::span<const wire::MrpMember> confirmed) {
    for (const wire::MrpMember& member : confirmed) std::erase(list_, member);
    if (list_.empty()) stop();
  }
  // Whom EVICT is to name now; nobody any more once the repeats are used up.
  std::span<const wire::MrpMember> take_due(wire::Instant now) {
    if (repeat_.is_used_up()) list_.clear();
    if (list_.empty()) {
      stop();
    } else {
      repeat_.sent(now);
    }
    return list_;
  }
  void stop() { repeat_.stop(); }
  wire::Instant deadline() const { return repeat_.deadline(); }

 private:
  std::vector<wire::MrpMember> list_;
  Backoff repeat_;
};

}  // namespace cepheus::mrp
