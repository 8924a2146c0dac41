#include "controller/connections/engine/virtual_qpns.h"

#include <cassert>

#include "wire/sender_group.h"

namespace cepheus::connections {
namespace {

constexpr std::uint32_t kCount = wire::kLastSenderGroupQpn - wire::kFirstSenderGroupQpn + 1;

}  // namespace

VirtualQpns::VirtualQpns(std::uint32_t seed) : next_(seed % kCount) {}

std::optional<wire::Qpn> VirtualQpns::take(wire::Instant now) {
  while (!resting_.empty() && resting_.front().until <= now) {
    taken_.erase(resting_.front().qpn);
    resting_.pop_front();
  }
  if (taken_.size() == kCount) return std::nullopt;
  wire::Qpn qpn;
  do {
    qpn = wire::Qpn(wire::kFirstSenderGroupQpn + next_);
    next_ = (next_ + 1) % kCount;
  } while (!taken_.insert(qpn).second);
  return qpn;
}

void VirtualQpns::give_back(wire::Qpn qpn, wire::Instant now) {
  assert(taken_.contains(qpn));
  resting_.push_back({qpn, now + kRest});
}

}  // namespace cepheus::connections
