#include "switch-emulator/engine/mcrdma/sender_table.h"

#include <algorithm>

#include "switch-emulator/engine/check.h"

namespace cepheus::fabric {

const wire::MrpRegion* SenderGroup::find_region(std::uint8_t receiver, std::uint32_t number) const {
  const auto all = said.region_list();
  const auto at = std::ranges::find_if(all, [&](const wire::SenderGroupMessage::Region& r) {
    return r.receiver == receiver && r.region.number == number;
  });
  return at == all.end() ? nullptr : &at->region;
}

SenderGroup* SenderTable::find(const SenderKey& key) {
  const auto at = groups_.find(key);
  return at == groups_.end() ? nullptr : at->second.get();
}

SenderGroup* SenderTable::find_merge(const SenderKey& key) {
  const auto at = merges_.find(key);
  return at == merges_.end() ? nullptr : at->second;
}

SenderGroup& SenderTable::add(const SenderKey& key) {
  auto& place = groups_[key];
  place = std::make_unique<SenderGroup>();
  return *place;
}

void SenderTable::set_merge(SenderGroup& group, std::unique_ptr<AckMerge> merge) {
  group.merge = std::move(merge);
  merges_[group.feedback_key()] = &group;
}

void SenderTable::erase(const SenderKey& key) {
  const auto at = groups_.find(key);
  if (at == groups_.end()) return;
  if (at->second->merge) merges_.erase(at->second->feedback_key());
  groups_.erase(at);
}

std::size_t SenderTable::count_of(Ipv4 sender) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      groups_, [sender](const auto& entry) { return entry.first.sender == sender; }));
}

std::size_t SenderTable::rule_count() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      groups_, [](const auto& entry) { return !entry.second->rule.empty(); }));
}

void SenderTable::check_consistent() const {
  for (const auto& [key, group] : groups_) {
    const SenderGroup& g = *group;
    must(key == g.key(), "a sender group is found by its name");
    must(g.said.receiver_count > 0 && !g.branches.empty(), "a sender group leads somewhere");
    must(g.rule.empty() || g.rule.size() == g.branches.size(), "a rule has a replica per branch");
    const auto merge = merges_.find(g.feedback_key());
    const bool is_merged = merge != merges_.end() && merge->second == group.get();
    must(is_merged == (g.merge != nullptr), "feedback finds the group that merges it");
    must(!g.merge || g.merge->receivers().size() == g.said.receiver_count,
         "feedback of each receiver is merged");
  }
}

}  // namespace cepheus::fabric
