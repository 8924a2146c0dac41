// Members of a reduction group that are late, silent or lost: probes, and reports to the leader.
#include <algorithm>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/reduction/reduction_group.h"
#include "wire/situation.h"

namespace cepheus::fabric {
namespace {

constexpr int kMostDoublings = 6;  // of the time between probes

}  // namespace

// Members elsewhere may wait for one here, although no member here waits.
void ReductionGroup::on_query(Call& call) {
  requested_at_ = call.now;
  schedule(call.now);
  const bool is_quiet = newest_ == results_ && std::ranges::all_of(hops_, [](const Hop& hop) {
                          return hop.out.is_idle();
                        });
  if (!is_quiet) return;
  CEPHEUS_SITUATION("members elsewhere wait, and here nobody");
  if (queried_ == Instant() || call.now - queried_ > kQueried * probe_wait_) {
    queried_first_ = call.now;
  }
  queried_ = call.now;
  schedule(call.now + probe_wait_);
}

std::optional<Instant> ReductionGroup::late_since(Instant now, PathNo path) const {
  if (!tree_.paths[path].is_host) return std::nullopt;
  const Unit next = hops_[path].in.next();
  if (next < newest_) return slots_.contribution(next).since;
  const bool is_queried = queried_ != Instant() && now - queried_ <= kQueried * probe_wait_;
  return newest_ == results_ && is_queried ? std::optional(queried_first_) : std::nullopt;
}

// The leader seeks late members, and ends the group for a member's silence.
bool ReductionGroup::is_requested(Instant now) const {
  return requested_at_ != Instant() && now - requested_at_ <= kQueried * probe_wait_;
}

// Only while nothing is under way to it: repeats do the same (repeat_due). Less and less often
// once the member owes, unless the leader asks.
Instant ReductionGroup::probe_due(Instant now, PathNo path) const {
  const auto since = late_since(now, path);
  const Hop& hop = hops_[path];
  if (!since || hop.out.acked() != results_) return wire::kNever;
  const int doublings =
      is_requested(now) ? 0 : std::clamp(hop.silent_probes - kSilent - 1, 0, kMostDoublings);
  return std::max(*since, hop.probed) + probe_wait_ * (1 << doublings);
}

// The group was to end with its first loss. Nothing may complete without the member.
void ReductionGroup::on_path_removed(Call&, const Removed& removed) {
  hops_[removed.gone] = hops_[removed.last];
  hops_.pop_back();
  sides_.remove_path(removed.gone);
  if (parent_ == removed.last) parent_ = removed.gone;
  slots_.on_path_removed(removed.gone, removed.last);
  has_failed_ = true;
  failure_.reset();
}

void ReductionGroup::on_port_down(PathNo path) {
  hops_[path].evidence.was_down = true;
  hops_[path].evidence.is_back = false;
}

void ReductionGroup::on_port_up(PathNo path) {
  Evidence& evidence = hops_[path].evidence;
  evidence.is_back = evidence.was_down;
}

// Members confirm late if they are busy. Members at the leader's side confirm elsewhere: for the trunk
// to them the time from CONFIRM to ACTIVATE counts.
void ReductionGroup::on_round_trip(PathNo path, Duration most, bool to_all) {
  if (!tree_.paths[path].is_host && to_all == (path == tree_.leader_trunk())) return;
  hops_[path].out.guess(std::min<Duration>(most, Requester::kFirstWait / 4));
}

HostReport ReductionGroup::report(const Call& call, PathNo path, bool is_up) const {
  const Hop& hop = hops_[path];
  const bool is_down = hop.evidence.was_down || !is_up;
  const bool has_work = !hop.out.is_idle();
  const bool owes = (has_work && hop.out.silent_repeats() > kSilent) || hop.silent_probes > kSilent;
  if (hop.silent_probes > kSilent) CEPHEUS_SITUATION("a member leaves its probes unanswered");
  const bool is_late = has_work || late_since(call.now, path).has_value();
  const int flags = (is_down ? wire::kMemberDown : 0) | (owes ? wire::kMemberOwes : 0) |
                    (is_late && !owes && !is_down ? wire::kMemberLate : 0);
  return {static_cast<std::uint8_t>(flags), hop.evidence.packets};
}

}  // namespace cepheus::fabric
