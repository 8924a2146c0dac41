#include "switch-emulator/engine/views.h"

#include "switch-emulator/engine/numbering.h"

namespace cepheus::fabric {

namespace {

// Whoever's first packets the gate holds or has answered RNR.
Ipv4 next_source(const SwitchConfig& config, const Group& group) {
  const Gate& gate = group.turn.gate();
  const PathNo waiting = gate.holds() ? gate.path() : gate.answered();
  if (waiting == kNoPath) return {};
  const Path& path = group.paths[waiting];
  if (path.is_host) return config.ports[path.port.value()].host;
  return gate.holds() ? gate.source() : Ipv4();
}

}  // namespace

GroupView view_of(const SwitchConfig& config, const Group& group, Ipv4 leader, bool active) {
  const Turn& turn = group.turn;
  GroupView view;
  view.id = group.id;
  view.epoch = group.epoch;
  view.leader = leader;
  view.active = active;
  view.source_change = group.strategies.numbering->name();
  view.write_mode = to_string(group.strategies.writes);
  if (group.regions) view.refused = group.regions->last_refusal();
  view.start = group.start;
  view.base = turn.base();
  view.sent = turn.sent();
  view.acknowledged = turn.acknowledged();
  view.source = turn.name().source;
  view.next_source = next_source(config, group);
  view.nak_held = turn.naks().holds();
  for (PathNo i = 0; i < group.paths.size(); ++i) {
    const Path& path = group.paths[i];
    PathView p;
    p.port = path.port;
    const PortConfig& port = config.ports[path.port.value()];
    p.name = port.name;
    p.is_host = path.is_host;
    if (path.is_host) p.host = port.host;
    p.qpn = path.qpn;
    p.acked = path.acked();
    p.is_source = i == turn.source();
    p.towards_leader = i == group.leader;
    const std::int32_t lag = distance(path.acked(), turn.sent());  // within kMostUnderWay
    p.lag = p.is_source || lag < 0 ? 0 : static_cast<std::uint32_t>(lag);
    p.turns_offset = path.turns();
    if (group.regions) {
      for (const Region& r : group.regions->of(path.port)) {
        p.regions.push_back({r.number, r.virtual_address, r.length});
      }
    }
    view.paths.push_back(std::move(p));
  }
  view.data_packets = group.stats.data_packets;
  view.data_bytes = group.stats.data_bytes;
  view.copies = group.stats.copies;
  const TableBytes bytes = bytes_of(group);
  view.table_bytes = TableBytes::sum(bytes.table);
  view.beside_bytes = TableBytes::sum(bytes.beside);
  return view;
}

TableBytes bytes_of(const Group& group) {
  const std::size_t index = group.path_index.size() * sizeof(PathNo);
  const std::size_t paths = group.paths.size();
  constexpr std::size_t kGate = sizeof(Gate), kNaks = sizeof(NakFilter);
  TableBytes bytes;
  bytes.table = {
      {"path_index", index},
      {"path.port", paths * sizeof(Path::port)},
      {"path.is_host", paths * sizeof(Path::is_host)},
      {"path.qpn", paths * sizeof(Path::qpn)},
      {"path.ack", paths * sizeof(Packed24<Psn>)},
      {"path.turns", paths * sizeof(Packed24<Psn>)},
      {"path.messages", paths * sizeof(Packed24<Psn>)},
      {"group.identity", sizeof(Group::id) + sizeof(Group::epoch) + sizeof(Group::start)},
      {"group.turn", sizeof(Group::leader) + sizeof(Turn) - kNaks - kGate},
      {"group.nak", kNaks},
      {"group.gate", kGate},
      {"group.stats", sizeof(Group::stats)},
      {"group.strategies", sizeof(Group::strategies)},
  };
  const std::size_t named = TableBytes::sum(bytes.table);
  const std::size_t all = sizeof(Group) + index + paths * sizeof(Path);
  const std::size_t cnps = group.cnps->table_bytes();
  bytes.table.emplace_back("padding_and_pointers", all - named);
  if (cnps > 0) bytes.table.emplace_back("cnps", cnps);
  bytes.beside = {
      {"path.evidence", paths * sizeof(Evidence)},
      {"message_ends", sizeof(MessageEnds)},
      {"held_frames", group.turn.gate().room() * sizeof(Gate::Held)},
  };
  if (group.regions) bytes.beside.emplace_back("regions", group.regions->table_bytes());
  return bytes;
}

TableBytes bytes_of_paths(std::size_t ports, std::size_t paths) {
  Group group(McstId(), 0, Strategies::of(SwitchConfig()));
  for (std::size_t i = 0; i < paths; ++i) {
    group.add_path(PortId(static_cast<std::uint16_t>(ports - paths + i)), true);
  }
  return bytes_of(group);
}

SenderGroupView view_of(const SenderGroup& group) {
  SenderGroupView view;
  view.sender = group.said.sender();
  view.virtual_qpn = group.said.virtual_qpn;
  view.sender_qpn = group.said.sender_qpn;
  view.epoch = group.said.header.epoch;
  view.merges = group.merge != nullptr;
  if (group.merge) view.alias = group.merge->alias();
  view.branches = group.branches.size();
  view.replicas = group.rule.size();
  view.data_packets = group.data_packets;
  view.copies = group.copies;
  for (std::uint8_t i = 0; i < group.said.receiver_count; ++i) {
    SenderReceiverView one;
    one.host = group.said.receivers[i].host;
    one.qpn = group.said.receivers[i].qpn;
    for (const auto& r : group.said.region_list()) {
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
    view.merge_bytes = AckMerge::kGroupBytes + group.said.receiver_count * AckMerge::kReceiverBytes;
  }
  return view;
}

}  // namespace cepheus::fabric
