// Allocates virtual QPNs, the remote QPNs of sender groups (MC-RDMA III-A: MC_IDs).
#pragma once

#include <cassert>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>

#include "wire/sender_group.h"
#include "wire/types.h"

namespace cepheus::mrp {

// Both ends are included.
struct QpnRange {
  std::uint32_t first, last;
};
// A sender's address and a virtual QPN name a group, so every host has all of them to itself. The
// daemon cepheus-cmd gives out the upper half. Programs that choose for themselves use the lower
// half, and begin at a random place: switches refuse a number that another group of the host has.
inline constexpr QpnRange kChosenQpns{0xC00000, 0xDFFFFF};
inline constexpr QpnRange kDaemonQpns{0xE00000, 0xFFFFFE};

class VirtualQpns {
 public:
  // Packets and records of an ended group are gone from the fabric after this time.
  static constexpr wire::Duration kRest = std::chrono::seconds(10);

  // `seed`: where to begin. A process that is started again thus avoids the numbers it used before.
  VirtualQpns(QpnRange range, std::uint32_t seed);
  // A number that is neither held nor resting; empty: all are.
  std::optional<wire::Qpn> take(wire::Instant now);
  // The number rests from now on.
  void give_back(wire::Qpn qpn, wire::Instant now);
  std::size_t held() const { return taken_.size() - resting_.size(); }

 private:
  struct Resting {
    wire::Qpn qpn;
    wire::Instant until;
  };

  std::uint32_t first_, count_;
  std::uint32_t next_;         // from first_ on
  std::set<wire::Qpn> taken_;  // held, or resting
  std::deque<Resting> resting_;
};

static_assert(kChosenQpns.first == wire::kFirstSenderGroupQpn);
static_assert(kChosenQpns.last + 1 == kDaemonQpns.first);
static_assert(kDaemonQpns.last == wire::kLastSenderGroupQpn);

inline VirtualQpns::VirtualQpns(QpnRange range, std::uint32_t seed)
    : first_(range.first), count_(range.last - range.first + 1), next_(seed % count_) {}

inline std::optional<wire::Qpn> VirtualQpns::take(wire::Instant now) {
  while (!resting_.empty() && resting_.front().until <= now) {
    taken_.erase(resting_.front().qpn);
    resting_.pop_front();
  }
  if (taken_.size() == count_) return std::nullopt;
  wire::Qpn qpn;
  do {
    qpn = wire::Qpn(first_ + next_);
    next_ = (next_ + 1) % count_;
  } while (!taken_.insert(qpn).second);
  return qpn;
}

inline void VirtualQpns::give_back(wire::Qpn qpn, wire::Instant now) {
  assert(taken_.contains(qpn));
  resting_.push_back({qpn, now + kRest});
}

}  // namespace cepheus::mrp
