// For administrators and simulations: the view of a reduction group, its memory, and its checks.
#include <algorithm>

#include "switch-emulator/engine/check.h"
#include "switch-emulator/engine/reduction/reduction_group.h"
#include "switch-emulator/engine/views.h"
#include "wire/reduction.h"

namespace cepheus::fabric {

void ReductionGroup::show(const SwitchConfig&, GroupView& view) const {
  view.start = start_;
  view.base = start_;
  view.sent = psn_of(start_, newest_) - 1;
  view.acknowledged = psn_of(start_, results_) - 1;
  const bool has_to_end = has_failed_ || failure_.has_value();
  const PathNo up = parent();
  for (PathNo i = 0; i < view.paths.size(); ++i) {
    PathView& path = view.paths[i];
    path.acked = psn_of(start_, hops_[i].out.acked()) - 1;
    if (i == up) continue;
    const Unit next = hops_[i].in.next();
    path.lag = static_cast<std::uint32_t>(newest_ - next);
    if (next >= newest_ || has_to_end) continue;
    const UnitSlots::Contribution& first = slots_.contribution(next);
    const auto imm = wire::ReductionImm::from_what(first.shape.what);
    path.late = {next, first.since, imm.operation, imm.type, first.shape.bytes};
  }
  ReductionView& reduction = view.reduction.emplace();
  reduction.unit = slots_.unit_bytes();
  reduction.window = slots_.window();
  reduction.is_root = view.active && up == kNoPath;
  reduction.is_flat = members_.has(wire::MrpTree::kGroupIsFlat);
  reduction.newest = newest_;
  reduction.complete = complete_;
  reduction.results = results_;
  if (has_to_end) {
    reduction.failure = failure_ ? wire::to_string(failure_->reason) : "a member was evicted";
  }
  if (results_ < newest_ && !has_to_end) {
    reduction.waits_since = slots_.contribution(results_).since;
  }
  view.data_packets = stats_.contributions;
  view.data_bytes = stats_.bytes;
  view.copies = stats_.sent;
}

TableBytes ReductionGroup::bytes() const {
  TableBytes bytes;
  bytes.table = {
      {"reduction.units", reserved()},
      {"path.custody", hops_.size() * sizeof(Hop)},
      {"path.tree", sides_.bytes()},
      {"path.order", slots_.has_order() ? hops_.size() * sizeof(PathNo) : 0},
      {"group.reduction", sizeof(ReductionGroup)},
  };
  bytes.beside = {{"behaviour_room_for_paths",
                   (hops_.capacity() - hops_.size()) * sizeof(Hop) + sides_.spare_bytes()}};
  return bytes;
}

bool ReductionGroup::jump(std::uint64_t packets) {
  const auto is_idle = [this](const Hop& hop) {
    return hop.out.is_idle() && hop.out.acked() == results_ && hop.in.next() == results_;
  };
  if (has_failed_ || newest_ != results_) return false;
  if (!std::ranges::all_of(hops_, is_idle)) return false;
  for (Hop& hop : hops_) {
    hop.in.jump(packets);
    hop.out.jump(packets);
  }
  newest_ += packets;
  complete_ = results_ = newest_;
  return true;
}

void ReductionGroup::check_consistent(std::size_t) const {
  must(hops_.size() == tree_.paths.size(), "custody of other paths than there are");
  must(sides_.bytes() == hops_.size() * sizeof(wire::MrpTree), "trees of other paths");
  must(parent_ == kNoPath || !tree_.paths[parent_].is_host, "a host is no way to the root");
  must(results_ <= complete_ && complete_ <= newest_, "results of units that lack contributions");
  must(newest_ - results_ <= slots_.window(), "more units under way than there are slots");
  if (has_failed_) return;
  const PathNo up = parent();
  for (PathNo i = 0; i < hops_.size(); ++i) {
    const Hop& hop = hops_[i];
    if (i == up) {
      must(hop.in.next() == results_, "results that were not stored");
      must(hop.out.acked() >= results_ && hop.out.newest() <= complete_, "a partial of no unit");
    } else {
      must(hop.in.next() >= complete_ && hop.in.next() <= newest_, "a contribution of no unit");
      must(hop.out.newest() <= results_, "a result that is not known was sent");
      must(results_ - hop.out.acked() <= slots_.window(),
           "a result is overwritten that a path lacks");
    }
  }
}

}  // namespace cepheus::fabric
