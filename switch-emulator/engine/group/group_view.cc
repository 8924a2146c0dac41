// For administrators: the view of a group with one source at a time, and the size of its table.
#include "switch-emulator/engine/group/group.h"
#include "switch-emulator/engine/registration/claim.h"
#include "switch-emulator/engine/views.h"

namespace cepheus::fabric {
namespace {

// The newcomer with first packets in the gate, or with an RNR answer.
Ipv4 next_source(const SwitchConfig& config, const Group& group) {
  const Gate& gate = group.turn.gate();
  const PathNo waiting = gate.holds() ? gate.path() : gate.answered();
  if (waiting == kNoPath) return {};
  const Path& path = group.tree.paths[waiting];
  if (path.is_host) return config.ports[path.port.value()].host;
  return gate.holds() ? gate.source() : Ipv4();
}

}  // namespace

void Group::show(const SwitchConfig& config, GroupView& view) const {
  view.source_change = numbering.name();
  view.write_mode = to_string(writes);
  view.cnp_policy = cnps->to_text();
  if (regions) view.refused = regions->last_refusal();
  view.start = start;
  view.base = turn.base();
  view.sent = turn.sent();
  view.acknowledged = turn.acknowledged();
  view.source = turn.name().source;
  view.next_source = next_source(config, *this);
  view.held_nak = turn.naks().held();
  for (PathNo i = 0; i < view.paths.size(); ++i) {
    PathView& path = view.paths[i];
    path.acked = turn.acked(i);
    path.is_source = i == turn.source();
    path.is_worst = i == cnps->chosen();
    const std::int32_t lag = distance(path.acked, turn.sent());  // within kMostUnderWay
    path.lag = path.is_source || lag < 0 ? 0 : static_cast<std::uint32_t>(lag);
    path.turns_offset = turn.turns(i);
    if (!regions) continue;
    for (const Region& r : regions->of(path.port)) {
      path.regions.push_back({r.number, r.virtual_address, r.length});
    }
  }
  view.data_packets = stats.data_packets;
  view.data_bytes = stats.data_bytes;
  view.copies = stats.copies;
}

TableBytes Group::bytes() const {
  const std::size_t paths = tree.paths.size();
  constexpr std::size_t kGate = sizeof(Gate), kNaks = Naks::kTableBytes;
  constexpr std::size_t kSentNaks = sizeof(Naks) - kNaks;
  TableBytes bytes;
  bytes.table = {
      {"path.ack", paths * sizeof(PathTurns::acked)},
      {"path.turns", paths * sizeof(PathTurns::packets)},
      {"path.messages", paths * sizeof(PathTurns::messages)},
      {"group.turn", sizeof(Turn) - sizeof(Naks) - kGate + sizeof(start)},
      {"group.nak", kNaks},
      {"group.gate", kGate},
      {"group.stats", sizeof(stats)},
      {"group.strategies", sizeof(writes)},
  };
  const std::size_t named = TableBytes::sum(bytes.table);
  const std::size_t all = sizeof(Group) - kSentNaks + paths * sizeof(PathTurns);
  bytes.table.emplace_back("behaviour_padding_and_pointers", all - named);
  if (const std::size_t congestion = cnps->table_bytes(); congestion > 0) {
    bytes.table.emplace_back("cnps", congestion);
  }
  const std::size_t turns_capacity = (turn.path_capacity() - paths) * sizeof(PathTurns);
  const std::size_t evidence_capacity = (evidence.capacity() - paths) * sizeof(Evidence);
  bytes.beside = {
      {"path.evidence", paths * sizeof(Evidence)},
      {"path.round_trip", feedback_timer->path_bytes()},
      {"feedback_timer", sizeof(FeedbackTimer)},
      {"last_acks", sizeof(LastAcks)},
      {"sent_naks", kSentNaks},
      {"message_ends", turn.ends_bytes()},
      {"cnp_policy", cnps->bytes() - cnps->table_bytes()},
      {"behaviour_room_for_paths", turns_capacity + evidence_capacity},
  };
  if (regions) bytes.beside.emplace_back("regions", regions->bytes());
  return bytes;
}

}  // namespace cepheus::fabric
