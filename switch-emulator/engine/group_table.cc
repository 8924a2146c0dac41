#include "switch-emulator/engine/group_table.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/check.h"

namespace cepheus::fabric {
bool leads_to(const Mft& mft, PortId port) {
  return mft.leader != kNoPath && mft.paths[mft.leader].port == port;
}

void list_branches(const Mft& mft, std::vector<PortId>& out) {
  out.clear();
  for (PathNo i = 0; i < mft.paths.size(); ++i) {
    if (i != mft.leader) out.push_back(mft.paths[i].port);
  }
}

GroupTable::GroupTable(const SwitchConfig& config, MakeBehaviour make)
    : config_(config),
      make_(make),
      over_port_(config.ports.size(), 0),
      in_use_over_port_(config.ports.size(), 0) {}

GroupEntry* GroupTable::find(McstId id) {
  const auto at = entries_.find(id);
  return at == entries_.end() ? nullptr : at->second.get();
}

Tombstone* GroupTable::find_tombstone(McstId id) {
  const auto at = tombstones_.find(id);
  return at == tombstones_.end() ? nullptr : &at->second;
}

tl::expected<GroupEntry*, wire::MrpReject> GroupTable::add(McstId id, const Leader& leader,
                                                           std::uint16_t epoch,
                                                           std::size_t route_classes,
                                                           GroupRequest request, Instant now) {
  auto entry = std::make_unique<GroupEntry>(leader, id, epoch, route_classes);
  Mft& mft = entry->table.mft;
  request.memory_left = memory_left(leader.host);
  auto made = make_(mft, config_, request);
  if (!made) return tl::unexpected(made.error());
  mft.behaviour = std::move(*made);
  reserved_ += mft.behaviour->reserved();
  entry->last_seen = now;
  entry->due = expires(*entry);
  order_.emplace(entry->due, id);
  Led& of_host = led_by_[leader.host];
  ++of_host.groups;
  of_host.reserved.add(mft.behaviour->reserved());
  [[maybe_unused]] const auto [at, is_new] = entries_.emplace(id, std::move(entry));
  assert(is_new);
  return at->second.get();
}

std::size_t GroupTable::memory_left(Ipv4 leader) const {
  const std::size_t free = config_.reduction_memory - std::min(config_.reduction_memory, reserved_);
  const auto led = led_by_.find(leader);
  const bool has_share = led == led_by_.end() || led->second.reserved.has_space(free);
  return has_share ? free : 0;
}

bool GroupTable::has_memory_for_path(const GroupInstance& table) const {
  const Behaviour& behaviour = *table.mft.behaviour;
  const std::size_t more = behaviour.reserved_for_path() - behaviour.reserved();
  return more == 0 || more <= memory_left(table.leader);
}

std::uint32_t GroupTable::led_by(Ipv4 host) const {
  const auto at = led_by_.find(host);
  return at == led_by_.end() ? 0 : at->second.groups;
}

namespace {

// A group that has had no packet for this time leaves its share to others.
constexpr Duration kIdle = std::chrono::seconds(1);

// One part of a queue stays free, for unicasts and for repeats. Parts are powers of two: so n groups
// that come one after the other change their shares a few times, and not n times.
std::uint32_t parts_for(std::uint32_t groups) { return std::bit_ceil(groups + 1); }

}  // namespace

std::uint32_t GroupTable::share_of(PortId port, bool is_in_use) const {
  constexpr std::uint32_t kLeastShare = 16;
  constexpr std::uint32_t kWholeShare = 128;  // half of a larger part stays free for repeats
  if (!config_.rules.announced_window) return 0;
  const PortConfig& out = config_.ports[port.value()];
  const std::uint32_t frames = wire::least_known(out.most_waiting(), config_.data_slots);
  if (frames == 0) return out.ring_window;
  const std::uint32_t groups = in_use_over_port_[port.value()] + (is_in_use ? 0 : 1);
  const std::uint32_t part = frames / parts_for(groups);
  const std::uint32_t half = std::max(part / 2, std::min(part, kWholeShare));
  return wire::least_known(out.ring_window, std::max(half, std::min(frames, kLeastShare)));
}

void GroupTable::count_in_use(PortId port, int change) {
  std::uint32_t& groups = in_use_over_port_[port.value()];
  const std::uint32_t before = parts_for(groups);
  groups += static_cast<std::uint32_t>(change);
  const bool is_limited =
      config_.data_slots != 0 || config_.ports[port.value()].most_waiting() != 0;
  if (is_limited && parts_for(groups) != before) shares_have_changed_ = true;
}

void GroupTable::set_in_use(GroupEntry& entry, bool is_in_use) {
  entry.is_in_use = is_in_use;
  if (is_in_use) shares_have_changed_ = true;  // its own, while it was idle
  for (const Path& path : entry.table.mft.paths) count_in_use(path.port, is_in_use ? 1 : -1);
}

void GroupTable::look_for_idle_groups(Instant now) {
  next_look_ = now + kIdle / 4;
  for (const auto& [id, entry] : entries_) {
    if (entry->is_in_use && now - entry->last_seen >= kIdle) set_in_use(*entry, false);
  }
}

PathNo GroupTable::add_path(GroupInstance& table, PortId port, bool is_host) {
  ++over_port_[port.value()];
  const Behaviour& behaviour = *table.mft.behaviour;
  const std::size_t before = behaviour.reserved();
  const PathNo path = table.mft.add_path(port, is_host);
  const std::size_t more = behaviour.reserved() - before;
  reserved_ += more;
  led_by_.at(table.leader).reserved.add(more);
  return path;
}

void GroupTable::remove_path(Call& call, GroupEntry& entry, PathNo path) {
  Mft& mft = entry.table.mft;
  const PortId port = mft.paths[path].port;
  --over_port_[port.value()];
  if (entry.is_in_use) count_in_use(port, -1);
  mft.remove_path(call, entry.leader, path);
  if (entry.is_active) note_timer(mft.id, entry);
}

void GroupTable::erase(Call& call, McstId id) {
  const auto at = entries_.find(id);
  assert(at != entries_.end());
  GroupInstance& table = at->second->table;
  for (const Path& path : table.mft.paths) --over_port_[path.port.value()];
  if (at->second->is_in_use) set_in_use(*at->second, false);
  table.mft.behaviour->release_held(call);
  const std::size_t reserved = table.mft.behaviour->reserved();
  reserved_ -= reserved;
  const auto led = led_by_.find(table.leader);
  led->second.reserved.remove(reserved);
  if (--led->second.groups == 0) led_by_.erase(led);
  order_.erase({at->second->due, id});
  entries_.erase(at);
}

void GroupTable::bury(Call& call, McstId id) {
  GroupEntry& entry = *find(id);
  const Mft& mft = entry.table.mft;
  const PortId leader = mft.leader == kNoPath ? PortId() : mft.paths[mft.leader].port;
  Tombstone stone{entry.leader, mft.epoch, leader, {}, std::move(entry.table.roster)};
  list_branches(mft, stone.ports);
  erase(call, id);
  if (config_.max_tombstones == 0) return;
  if (burials_.size() >= config_.max_tombstones) {
    tombstones_.erase(burials_.front().second);
    burials_.pop_front();
  }
  tombstones_.emplace(id, std::move(stone));
  burials_.emplace_back(call.now + config_.rest, id);
}

Instant GroupTable::deadline() const {
  Instant first = wire::kNever;
  if (!order_.empty()) first = order_.begin()->first;
  if (!burials_.empty()) first = std::min(first, burials_.front().first);
  return first;
}

std::optional<McstId> GroupTable::next_due(Instant now) const {
  if (order_.empty() || order_.begin()->first > now) return std::nullopt;
  return order_.begin()->second;
}

Instant GroupTable::expires(const GroupEntry& entry) const {
  const Instant aged = entry.last_seen + (entry.is_active ? config_.age : config_.pending_age);
  return entry.orphaned ? std::min(aged, *entry.orphaned + config_.orphan_age) : aged;
}

void GroupTable::reschedule(McstId id, GroupEntry& entry) {
  auto node = order_.extract({entry.due, id});  // reuses the node, without allocation
  entry.due = due(entry);
  node.value().first = entry.due;
  order_.insert(std::move(node));
}

Instant GroupTable::due(const GroupEntry& entry) const {
  const Instant age = expires(entry);
  return entry.is_active ? std::min(age, entry.table.mft.behaviour->deadline()) : age;
}

void GroupTable::expire_tombstones(Instant now) {
  while (!burials_.empty() && burials_.front().first <= now) {
    tombstones_.erase(burials_.front().second);
    burials_.pop_front();
  }
}

void GroupTable::set_orphaned(PortId port, std::optional<Instant> since) {
  for (auto& [id, entry] : entries_) {
    const Mft& mft = entry->table.mft;
    if (mft.leader == kNoPath || mft.paths[mft.leader].port != port) continue;
    if (since && entry->orphaned) continue;  // a program came to the port and went, not the leader
    entry->orphaned = since;
    reschedule(id, *entry);
  }
}

void GroupTable::on_settings() {
  kept_ = entries_.size();
  for (auto& [id, entry] : entries_) reschedule(id, *entry);
}

std::size_t GroupTable::held() const {
  std::size_t frames = 0;
  for (const auto& [id, entry] : entries_) frames += entry->table.mft.behaviour->held();
  return frames;
}

void GroupTable::check_consistent() const {
  std::vector<std::uint32_t> over(over_port_.size(), 0), in_use(over_port_.size(), 0);
  std::unordered_map<Ipv4, std::pair<std::uint32_t, std::size_t>> led;
  std::size_t reserved = 0;
  for (const auto& [id, entry] : entries_) {
    const GroupInstance& table = entry->table;
    must(!tombstones_.contains(id), "a group that rests has a table");
    must(order_.contains({entry->due, id}), "an entry without its deadline");
    ++led[table.leader].first;
    led[table.leader].second += table.mft.behaviour->reserved();
    reserved += table.mft.behaviour->reserved();
    must(table.mft.id == id, "a table under another id");
    must(table.mft.leader < table.mft.paths.size() || entry->leaderless,
         "no path towards the leader");
    for (const Path& path : table.mft.paths) {
      ++over[path.port.value()];
      in_use[path.port.value()] += entry->is_in_use ? 1 : 0;
    }
    table.mft.check_consistent(config_.max_held);
    table.roster.check_consistent();
  }
  must(entries_.size() <= std::max<std::size_t>(config_.max_groups, kept_), "too many tables");
  must(led.size() == led_by_.size() &&
           std::ranges::all_of(led_by_,
                               [&](const auto& each) {
                                 const auto& [groups, bytes] = led[each.first];
                                 return each.second.groups == groups &&
                                        each.second.reserved.held() == bytes;
                               }),
       "tables are miscounted by their leaders' hosts");
  must(reserved == reserved_, "reserved memory is miscounted");
  must(over == over_port_, "groups over ports are miscounted");
  must(in_use == in_use_over_port_, "groups in use over ports are miscounted");
  must(order_.size() == entries_.size(), "a deadline without an entry");
  for (const auto& [id, stone] : tombstones_) {
    must(stone.roster.step() == wire::MrpType::kUnregister, "a tombstone awaits another step");
    stone.roster.check_consistent();
  }
  must(burials_.size() == tombstones_.size(), "a tombstone without its end");
  must(tombstones_.size() <= config_.max_tombstones, "too many tombstones");
}

}  // namespace cepheus::fabric
