#include "switch-emulator/engine/views.h"

#include <algorithm>

#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/mcrdma/sender_table.h"

namespace cepheus::fabric {

namespace {

// "port h2", "device of h2"; empty: all are equal, or another switch knows it.
std::string mtu_limit(const SwitchConfig& config, const GroupEntry& entry) {
  const Mft& mft = entry.table.mft;
  const Roster& roster = entry.table.roster;
  const std::uint16_t least = entry.table.path_mtu;
  const auto port = [&](const Path& path) -> const PortConfig& {
    return config.ports[path.port.value()];
  };
  const bool is_limited = std::ranges::any_of(
      mft.paths, [&](const Path& path) { return port(path).path_mtu() > least; });
  if (least == 0 || !is_limited) return {};
  if (roster.hosts_mtu() == least) {
    return "device of " + config.ports[roster.least_host().value()].name;
  }
  for (const Path& path : mft.paths) {
    if (port(path).path_mtu() == least) return "port " + port(path).name;
  }
  if (mft.leader == kNoPath || !mft.paths[mft.leader].is_host) return {};
  return roster.path().mtu == least ? "" : "device of " + port(mft.paths[mft.leader]).name;
}

}  // namespace

GroupView view_of(const SwitchConfig& config, const GroupTable& groups, const GroupEntry& entry) {
  const Mft& mft = entry.table.mft;
  GroupView view;
  view.id = mft.id;
  view.epoch = mft.epoch;
  view.leader = entry.leader.host;
  view.active = entry.is_active;
  view.window = entry.table.reported.window;
  for (PathNo i = 0; i < mft.paths.size(); ++i) {
    const Path& path = mft.paths[i];
    PathView p;
    p.port = path.port;
    const PortConfig& port = config.ports[path.port.value()];
    p.name = port.name;
    p.is_host = path.is_host;
    if (path.is_host) p.host = port.host;
    p.qpn = path.qpn;
    p.towards_leader = i == mft.leader;
    p.window = groups.share_of(path.port, entry.is_in_use);
    view.paths.push_back(std::move(p));
  }
  view.path_mtu = entry.table.path_mtu;
  view.mtu_limit = mtu_limit(config, entry);
  mft.behaviour->show(config, view);
  const TableBytes bytes = bytes_of(entry.table);
  view.table_bytes = TableBytes::sum(bytes.table);
  view.beside_bytes = TableBytes::sum(bytes.beside);
  return view;
}

TableBytes bytes_of(const GroupInstance& table) {
  const Mft& mft = table.mft;
  const std::size_t index = mft.path_index.size() * sizeof(PathNo);
  const std::size_t paths = mft.paths.size();
  TableBytes bytes = mft.behaviour->bytes();
  const TableBytes::Rows rows = {
      {"path_index", index},
      {"path.port", paths * sizeof(Path::port)},
      {"path.is_host", paths * sizeof(Path::is_host)},
      {"path.qpn", paths * sizeof(Path::qpn)},
      {"group.identity", sizeof(Mft::id) + sizeof(Mft::epoch) + sizeof(Mft::leader)},
  };
  const std::size_t all = sizeof(Mft) + index + paths * sizeof(Path);
  bytes.table.insert(bytes.table.begin(), rows.begin(), rows.end());
  bytes.table.emplace_back("padding_and_pointers", all - TableBytes::sum(rows));
  const std::size_t spare = mft.path_index.capacity() * sizeof(PathNo) +
                            mft.paths.capacity() * sizeof(Path) - index - paths * sizeof(Path);
  const std::size_t chosen = table.chosen.capacity() * sizeof(PortId);
  const TableBytes::Rows beside = {
      {"room_for_paths", spare},
      {"roster", sizeof(Roster) + table.roster.allocated_bytes()},
      {"registration",
       GroupTable::kEntryBytes + sizeof(GroupInstance) - sizeof(Mft) - sizeof(Roster) + chosen},
  };
  bytes.beside.insert(bytes.beside.end(), beside.begin(), beside.end());
  return bytes;
}

TableBytes bytes_of(const TableShape& shape) {
  const SwitchConfig config;
  GroupInstance table(McstId(), 0, 0, Ipv4());
  const GroupRequest request{wire::MrpHeader::kLossEnds, shape.reduction, ~std::size_t{0}};
  table.mft.behaviour = *make_behaviour(table.mft, config, request);
  const bool by_trunk = shape.members > 0;
  const std::size_t lowest = shape.ports - shape.paths;
  const auto port = [&](std::size_t i) {
    return PortId(static_cast<std::uint16_t>(lowest + i % shape.paths));
  };
  for (std::size_t i = 0; i < shape.paths; ++i) table.mft.add_path(port(i), !by_trunk);
  table.mft.leader = 0;
  // The leader, behind the first path, is on no roster.
  std::vector<Roster::Member> behind;
  const std::size_t members = by_trunk ? shape.members : shape.paths;
  for (std::size_t i = 1; i < members; ++i) {
    const PortId by = by_trunk ? port(1 + i % (shape.paths - 1)) : port(i);
    behind.push_back({Ipv4(static_cast<std::uint32_t>(i)), Qpn(1), by, 0, by_trunk});
  }
  table.roster.add(behind);
  if (shape.active) table.roster.begin(wire::MrpType::kActivate);
  return bytes_of(table);
}

SenderGroupView view_of(const SenderGroup& group) {
  SenderGroupView view;
  view.sender = group.installed.sender();
  view.addressed = group.installed.addressed;
  view.virtual_qpn = group.installed.virtual_qpn;
  view.sender_qpn = group.installed.sender_qpn;
  view.epoch = group.installed.header.epoch;
  view.merges = group.merge != nullptr;
  if (group.merge) view.alias = group.merge->alias();
  view.branches = group.branches.size();
  view.replicas = group.rule.size();
  view.data_packets = group.data_packets;
  view.copies = group.copies;
  for (std::uint8_t i = 0; i < group.installed.receiver_count; ++i) {
    SenderReceiverView one;
    one.host = group.installed.receivers[i].host;
    one.qpn = group.installed.receivers[i].qpn;
    for (const auto& r : group.installed.region_list()) {
      if (r.receiver != i) continue;
      one.regions.push_back({r.region.number, r.region.virtual_address, r.region.length});
    }
    if (group.merge) {
      const AckMerge::Receiver& known = group.merge->receivers()[i];
      one.is_known = known.is_known;
      one.acked = known.acked;
      const bool lags = known.is_known && group.merge->lags(known);
      if (lags) one.lag = static_cast<std::uint32_t>(distance(known.acked, *group.merge->sent()));
    }
    view.receivers.push_back(std::move(one));
  }
  // Key: two IPv4 and QPN; a replica: set of ports, IPv4, QPN, table of regions (MC-RDMA V-A).
  constexpr std::size_t kKey = 4 + 3 + 4, kReplica = 2 + 4 + 3 + 2;
  if (!group.rule.empty()) view.rule_bytes = kKey + group.rule.size() * kReplica;
  if (group.merge) {
    view.merge_bytes =
        AckMerge::kGroupBytes + group.installed.receiver_count * AckMerge::kReceiverBytes;
  }
  return view;
}

}  // namespace cepheus::fabric
