// Each change takes the next number and starts PUBLISH anew; only the CONFIRM of the newest number
// stops it. With kMostUnconfirmed numbers under way a change takes none: it gets its number when
// the newest one is confirmed.
#include "controller/publisher.h"

#include <algorithm>

namespace cepheus::mrp {
bool Publisher::add(Instant now, const wire::MrpRegion& region) {
  const auto at = std::ranges::lower_bound(regions_, region.number, {}, &wire::MrpRegion::number);
  const bool is_known = at != regions_.end() && at->number == region.number;
  if (!is_known && regions_.size() == wire::Publication::kMaxRegions) return false;
  if (is_known) {
    *at = region;
  } else {
    regions_.insert(at, region);
  }
  change(now);
  return true;
}

void Publisher::announce(Instant now) {
  is_announced_ = true;
  change(now);
}

bool Publisher::remove(Instant now, std::uint16_t number) {
  const auto at = std::ranges::lower_bound(regions_, number, {}, &wire::MrpRegion::number);
  if (at == regions_.end() || at->number != number) return false;
  regions_.erase(at);
  change(now);
  return true;
}

void Publisher::change(Instant now) {
  const auto unconfirmed = static_cast<std::uint16_t>(serial_ - confirmed_);
  is_overtaken_ = unconfirmed == kMostUnconfirmed;
  if (!is_overtaken_) ++serial_;
  if (group_) repeat_ = Backoff(pace_, now);
}

void Publisher::begin(Instant now, const wire::MrpHeader& group, const wire::MrpMember& self) {
  group_ = group;
  group_->type = wire::MrpType::kPublish;
  group_->flags = 0;
  group_->total = 1;
  self_ = self;
  if (!is_in_force()) repeat_ = Backoff(pace_, now);
}

void Publisher::on_confirm(Instant now, const wire::MrpHeader& header) {
  const bool is_newest = header.flags == static_cast<std::uint16_t>(wire::MrpType::kPublish) &&
                         header.seq == serial_ && group_ && header.epoch == group_->epoch &&
                         header.mcst_id == group_->mcst_id && header.instance == group_->instance;
  if (!is_newest) return;
  confirmed_ = serial_;
  repeat_.stop();
  if (is_overtaken_) change(now);
}

std::optional<wire::Publication> Publisher::take_due(Instant now) {
  if (!repeat_.is_due(now)) return std::nullopt;
  repeat_.sent(now);
  std::optional<wire::Publication> message(std::in_place);
  message->header = *group_;
  message->header.seq = serial_;
  if (is_announced_) message->header.flags = wire::Publication::kAnnounced;
  message->member = self_;
  std::copy(regions_.begin(), regions_.end(), message->regions.begin());
  message->count = regions_.size();
  return message;
}

}  // namespace cepheus::mrp
