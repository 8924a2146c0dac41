#include "switch-emulator/engine/views.h"

namespace cepheus::fabric {

namespace {

// Whoever's first packets the gate holds or has answered RNR.
Ipv4 next_source(const Group& group) {
  const Gate& gate = group.turn.gate();
  const PathNo waiting = gate.holds() ? gate.path() : gate.answered();
  if (waiting == kNoPath) return {};
  if (group.paths[waiting].is_host) return group.paths[waiting].host;
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
  view.source_change = config.rules.source_change == SourceChange::kRebase ? "rebase" : "host-sync";
  view.start = group.start;
  view.base = turn.base();
  view.sent = turn.sent();
  view.acknowledged = turn.acknowledged();
  view.source = turn.name().source;
  view.next_source = next_source(group);
  view.nak_held = turn.naks().holds();
  for (PathNo i = 0; i < group.paths.size(); ++i) {
    const Path& path = group.paths[i];
    PathView p;
    p.port = path.port;
    p.name = config.ports[path.port.value()].name;
    p.is_host = path.is_host;
    p.host = path.host;
    p.qpn = path.qpn;
    p.acked = path.acked();
    p.is_source = i == turn.source();
    p.towards_leader = i == group.leader;
    const std::int32_t lag = distance(path.acked(), turn.sent());
    p.lag = p.is_source || lag < 0 ? 0 : static_cast<std::uint32_t>(lag);
    p.turns_offset = path.turns();
    view.paths.push_back(std::move(p));
  }
  view.data_packets = group.stats.data_packets;
  view.data_bytes = group.stats.data_bytes;
  view.copies = group.stats.copies;
  for (const auto& [field, bytes] : fields_of(config.ports.size(), group.paths.size())) {
    view.table_bytes += bytes;
  }
  return view;
}

std::vector<std::pair<std::string, std::size_t>> fields_of(std::size_t ports, std::size_t paths) {
  std::vector<std::pair<std::string, std::size_t>> rows = {
      {"path_index", ports * sizeof(decltype(Group::path_index)::value_type)},
      {"path.port", paths * sizeof(Path::port)},
      {"path.is_host", paths * sizeof(Path::is_host)},
      {"path.was_down", paths * (sizeof(Path::was_down) + sizeof(Path::is_back))},
      {"path.unanswered", paths * sizeof(Path::unanswered)},
      {"path.qpn", paths * sizeof(Path::qpn)},
      {"path.host", paths * sizeof(Path::host)},
      {"path.heard", paths * sizeof(Path::heard)},
      {"path.ack", paths * sizeof(Psn)},
      {"path.turns", paths * sizeof(decltype(Path().turns()))},
      {"path.messages", paths * sizeof(decltype(Path().messages()))},
      {"group.identity", sizeof(Group::id) + sizeof(Group::epoch) + sizeof(Group::start)},
      {"group.turn", sizeof(Group::leader) + sizeof(Turn) - sizeof(NakFilter) -
                         sizeof(MessageEnds) - sizeof(Gate)},
      {"group.nak", sizeof(NakFilter)},
      {"group.message_ends", sizeof(MessageEnds)},
      {"group.gate", sizeof(Gate)},
      {"group.stats", sizeof(Group::stats)},
  };
  std::size_t named = 0;
  for (const auto& [field, bytes] : rows) named += bytes;
  const std::size_t all = sizeof(Group) + ports * sizeof(decltype(Group::path_index)::value_type) +
                          paths * sizeof(Path);
  rows.emplace_back("padding_and_pointers", all - named);
  return rows;
}

}  // namespace cepheus::fabric
