#include "switch-emulator/engine/mcrdma/sender_table.h"

#include "switch-emulator/engine/check.h"

namespace cepheus::fabric {

namespace {

// The rule for data that arrives addressed to `addressed` (MC-RDMA algorithm 1, lines 16 to 25).
// Without a branch, a rule is needed as well if no later switch could rewrite the packet for a
// receiver's queue pair.
std::vector<Replica> rule_for(std::span<const wire::MrpMember> receivers,
                              const std::vector<Branch>& branches, Ipv4 addressed) {
  const bool is_last = branches.size() == 1 && branches.front().is_here;
  const bool is_for_one =
      std::ranges::find(receivers, addressed, &wire::MrpMember::host) != receivers.end();
  if (branches.size() == 1 && !is_last && is_for_one) return {};
  std::vector<Replica> rule;
  rule.reserve(branches.size());
  for (const Branch& branch : branches) {
    const wire::MrpMember& first = receivers[branch.receivers.front()];
    rule.push_back({first.host, branch.is_one() ? first.qpn : Qpn(), branch.receivers.front()});
  }
  return rule;
}

}  // namespace

void SenderGroup::set_branches(std::vector<Branch> all) {
  branches = std::move(all);
  rule = rule_for(installed.list(), branches, installed.addressed);
}

const wire::MrpRegion* SenderGroup::find_region(std::uint8_t receiver, std::uint32_t number) const {
  const auto all = installed.region_list();
  const auto at = std::ranges::find_if(all, [&](const wire::SenderGroupMessage::Region& r) {
    return r.receiver == receiver && r.region.number == number;
  });
  return at == all.end() ? nullptr : &at->region;
}

SenderGroup* SenderTable::find(const SenderKey& key, Ipv4 addressed) {
  const auto at = groups_.find(key);
  if (at == groups_.end()) return nullptr;
  const auto record = std::ranges::find(at->second, addressed,
                                        [](const auto& one) { return one->installed.addressed; });
  return record == at->second.end() ? nullptr : record->get();
}

SenderGroup* SenderTable::find_merge(const SenderKey& key) {
  const auto at = groups_.find(key);
  if (at == groups_.end()) return nullptr;
  const auto record =
      std::ranges::find_if(at->second, [](const auto& one) { return one->merge != nullptr; });
  return record == at->second.end() ? nullptr : record->get();
}

SenderGroup& SenderTable::add(const SenderKey& key, Ipv4 addressed) {
  auto& record = groups_[key].emplace_back(std::make_unique<SenderGroup>());
  record->installed.addressed = addressed;
  ++size_;
  ++of_sender_[key.sender];
  return *record;
}

void SenderTable::erase(const SenderGroup& group) {
  erase_if(group.key(), [&](const SenderGroup& record) { return &record == &group; });
}

std::size_t SenderTable::count_of(Ipv4 sender) const {
  const auto at = of_sender_.find(sender);
  return at == of_sender_.end() ? 0 : at->second;
}

void SenderTable::check_consistent() const {
  std::size_t count = 0;
  std::unordered_map<Ipv4, std::size_t> of_sender;
  for (const auto& [key, records] : groups_) {
    count += records.size();
    of_sender[key.sender] += records.size();
    for (const auto& record : records) {
      must(key == record->key(), "a sender group is found by its name");
    }
  }
  must(count == size_ && of_sender == of_sender_, "sender groups are counted, by sender as well");
  for_each([&](const SenderGroup& g) {
    must(g.installed.receiver_count > 0 && !g.branches.empty(), "a sender group leads somewhere");
    must(g.rule.empty() || g.rule.size() == g.branches.size(), "a rule has a replica per branch");
    must(!g.merge || g.merge->receivers().size() == g.installed.receiver_count,
         "feedback of each receiver is merged");
  });
}

}  // namespace cepheus::fabric
