#include "controller/virtual_qpns.h"

#include <cassert>

#include "wire/sender_group.h"

namespace cepheus::mrp {

static_assert(kChosenQpns.first == wire::kFirstSenderGroupQpn);
static_assert(kChosenQpns.last + 1 == kDaemonQpns.first);
static_assert(kDaemonQpns.last == wire::kLastSenderGroupQpn);

VirtualQpns::VirtualQpns(QpnRange range, std::uint32_t seed)
    : first_(range.first), count_(range.last - range.first + 1), next_(seed % count_) {}

std::optional<wire::Qpn> VirtualQpns::take(wire::Instant now) {
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

void VirtualQpns::give_back(wire::Qpn qpn, wire::Instant now) {
  assert(taken_.contains(qpn));
  resting_.push_back({qpn, now + kRest});
}

}  // namespace cepheus::mrp
