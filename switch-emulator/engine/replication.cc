#include "switch-emulator/engine/replication.h"

#include <algorithm>
#include <array>
#include <utility>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/feedback.h"
#include "switch-emulator/engine/refusals.h"
#include "wire/announcement.h"
#include "wire/ecn.h"
#include "wire/icrc.h"

namespace cepheus::fabric {
namespace {

// Whether the path lacks the packet. Bound: `psn` has been admitted, so it is within the data
// window beyond `sent` and above an older turn. Paths' acknowledgements are within
// Turn::kMostUnderWay of it (Turn::may_send()).
bool lacks(const OneSource& group, PathNo path, Psn psn) {
  return before(group.turn.acked(path), psn);
}

// Refuses a WRITE's first packet if `allows(path number)` is false for a host at this switch that
// lacks it. Hosts that have it are not checked: their regions may have gone since.
template <typename Allows>
bool refuse_unless(Call& call, OneSource& group, const GroupPacket& packet, Psn psn,
                   const Allows& allows) {
  for (PathNo i = 0; i < group.tree.paths.size(); ++i) {
    const Path& path = group.tree.paths[i];
    if (!path.is_host || i == group.turn.source() || !lacks(group, i, psn) || allows(i)) continue;
    group.own_regions().refuse_from(psn);
    refuse_write(call, group, packet, path);
    return true;
  }
  if (group.regions) group.regions->admit(psn);
  return false;
}

// `target`: the member's own memory; the packet's address is an offset in it.
template <typename Target>
bool send_to_memory(Call& call, const OneSource& group, PathNo to, const GroupPacket& packet,
                    Psn psn, const Target& target) {
  wire::Reth reth = packet.headers.reth;
  reth.virtual_address += target.virtual_address;
  reth.rkey = target.rkey;
  return send_addressed(call, group, to, packet.frame, psn, reth);
}

// How the copies of a packet are made: unchanged, except for bridging.
struct AsItIs {
  bool is_refused(Call&, OneSource&, const GroupPacket&, Psn) const { return false; }
  bool send(Call& call, const OneSource& group, PathNo to, const GroupPacket& packet,
            const TurnName& turn, Psn psn) const {
    return send_data(call, group, to, packet.frame, packet.headers, turn, psn);
  }
};

// ... of a WRITE's packets after the first.
struct Continued : AsItIs {
  bool is_refused(Call& call, OneSource& group, const GroupPacket&, Psn psn) const {
    if (!group.regions || !group.regions->refuses(psn)) return false;
    call.count(Counter::kDropWriteRefused);
    return true;
  }
};

// ... of a WRITE's first packet: to hosts with the address and key of their own regions. Its
// virtual address is the offset, and its key the region's number. If one host at this switch has no
// such region, or a smaller one, none of them gets the packet (refusals.h).
struct Addressed : AsItIs {
  static const Region* region_of(const Call& call, const OneSource& group, const Path& path,
                                 const wire::Reth& reth) {
    const Region* region = group.regions ? group.regions->find(path.port, reth.rkey) : nullptr;
    const bool is_checked = call.rules().write_bounds;
    const bool fits =
        region != nullptr && (!is_checked || region->holds(reth.virtual_address, reth.dma_length));
    return fits ? region : nullptr;
  }
  bool is_refused(Call& call, OneSource& group, const GroupPacket& packet, Psn psn) const {
    const wire::Reth& reth = packet.headers.reth;
    return refuse_unless(call, group, packet, psn, [&](PathNo i) {
      return region_of(call, group, group.tree.paths[i], reth) != nullptr;
    });
  }
  bool send(Call& call, const OneSource& group, PathNo to, const GroupPacket& packet,
            const TurnName& turn, Psn psn) const {
    const Path& path = group.tree.paths[to];
    if (!path.is_host) return AsItIs::send(call, group, to, packet, turn, psn);
    const Region& region = *region_of(call, group, path, packet.headers.reth);  // or it is refused
    return send_to_memory(call, group, to, packet, psn, region);
  }
};

// ... of an announcement (wire/announcement.h): the switch notes the targets of the hosts behind it
// and sends them a WRITE without data. A host with a full queue of targets gets none, and sends a
// NAK for it later.
struct Announcing : AsItIs {
  const wire::Announcement& announcement;

  bool send(Call& call, OneSource& group, PathNo to, const GroupPacket& packet,
            const TurnName& turn, Psn psn) const {
    const Path& path = group.tree.paths[to];
    if (!path.is_host) return AsItIs::send(call, group, to, packet, turn, psn);
    // Without a target, no byte may be written.
    const auto target =
        announcement.find(call.port(path.port).host).value_or(wire::AnnouncedTarget());
    const Turn& sent = group.turn;
    const Announced noted{sent.place_of(psn) + 1, target.virtual_address, target.length,
                          target.rkey};
    if (!group.own_regions().announcements().note(path.port, noted,
                                                  sent.place_of(sent.acked(to)))) {
      call.lose(Counter::kDataCopies, Counter::kDropAnnouncementSpace);
      return false;
    }
    return send_without_data(call, group, to, packet.frame, packet.headers, psn);
  }
};

// ... of the first packet of an announced WRITE: to hosts with the address and key that were noted
// for its PSN. Refusals are as in Addressed. A host gets no packet if its announcement was lost on
// the way here, because no key would make that packet harmless.
struct AsAnnounced : AsItIs {
  static const Announced* target_of(const Call& call, const OneSource& group, const Path& path,
                                    Psn psn) {
    if (!group.regions) return nullptr;
    const Announcements& all = group.regions->announcements();
    return call.rules().announced_by_psn ? all.find(path.port, group.turn.place_of(psn))
                                         : all.newest(path.port);
  }
  bool is_refused(Call& call, OneSource& group, const GroupPacket& packet, Psn psn) const {
    const wire::Reth& reth = packet.headers.reth;
    return refuse_unless(call, group, packet, psn, [&](PathNo i) {
      if (!call.rules().write_bounds) return true;
      const Announced* const target = target_of(call, group, group.tree.paths[i], psn);
      // A host that has acknowledged all before it has had its announcement, if there was one.
      return target != nullptr ? target->holds(reth.virtual_address, reth.dma_length)
                               : group.turn.acked(i) + 1 != psn;
    });
  }
  bool send(Call& call, const OneSource& group, PathNo to, const GroupPacket& packet,
            const TurnName& turn, Psn psn) const {
    const Path& path = group.tree.paths[to];
    if (!path.is_host) return AsItIs::send(call, group, to, packet, turn, psn);
    const Announced* const target = target_of(call, group, path, psn);
    if (target == nullptr) {
      call.lose(Counter::kDataCopies, Counter::kDropUnannounced);
      return false;
    }
    return send_to_memory(call, group, to, packet, psn, *target);
  }
};

// Copies to every path but the source's. If `psn` has passed before, only to paths that lack it,
// and now and then to all switches. Returns the number of paths that lack it.
template <typename Copies>
std::uint32_t copy_out(Call& call, OneSource& group, const GroupPacket& packet, Psn psn,
                       bool repeat, const Copies& copies) {
  const TurnName turn = group.turn.name();
  const bool to_all = !repeat || group.turn.should_reach_all(call.now, call.config.gate_age);
  if (to_all) group.turn.on_sent_everywhere(call.now);
  std::uint32_t wanted = 0;
  for (PathNo i = 0; i < group.tree.paths.size(); ++i) {
    const Path& path = group.tree.paths[i];
    const bool is_lacking = !repeat || lacks(group, i, psn);
    if (i == group.turn.source() || (!is_lacking && (!to_all || path.is_host))) continue;
    wanted += is_lacking;
    if (repeat && psn == group.turn.acked(i) + 1) {
      group.evidence[i].unanswered.note(call.now);
      if (!group.turn.awaits_handover()) group.feedback_timer->on_repeat(i);
    }
    if (!copies.send(call, group, i, packet, turn, psn)) continue;
    ++group.stats.copies;
  }
  return wanted;
}

template <typename Copies>
void replicate_by(Call& call, OneSource& group, const GroupPacket& packet, const Copies& copies) {
  if (claim_turn(call, group, packet) == Claim::kHandled) return;
  Turn& turn = group.turn;
  const Psn psn = turn.from_port(packet.psn());
  if (!turn.may_send(psn, call.config.data_window)) {
    return call.count(Counter::kDropDataWindow);
  }
  group.traffic_class = wire::without_ecn(packet.headers.ip.tos);
  group.evidence[turn.source()].on_packet();
  if (copies.is_refused(call, group, packet, psn)) return;
  call.count(Counter::kDataTaken);
  ++group.stats.data_packets;
  group.stats.data_bytes += packet.frame.payload_len;

  const bool ends_message = wire::opcode_info(packet.headers.bth.opcode).last;
  const bool is_owed = ends_message || packet.headers.bth.ack_request;
  const auto repeat = turn.naks().on_data(call.now, psn);
  const bool is_new = turn.on_data(psn, ends_message);
  group.feedback_timer->on_data(call.now, turn.source(), psn, is_owed, is_new, repeat);
  if (is_new) {
    // No other member in this group: no feedback will say that it has arrived.
    if (copy_out(call, group, packet, psn, false, copies) == 0) acknowledge_to_source(call, group);
  } else if (copy_out(call, group, packet, psn, true, copies) > 0) {
    if (psn == turn.base()) extend_wait(call, group);
  } else if (call.rules().lost_aggregate_answer) {
    call.count(Counter::kLostAggregateAnswered);
    acknowledge_to_source(call, group);
  }
}

// The switch acts on an announcement, so it checks the ICRC, and does not pass it on to hosts. The
// source may still write the payload, so the switch checks and reads a copy.
void replicate_announcement(Call& call, OneSource& group, const GroupPacket& packet) {
  const auto payload = packet.frame.payload();
  constexpr std::size_t kLargestMtu = 4096;
  std::array<std::uint8_t, kLargestMtu> bytes;
  if (payload.size() > bytes.size()) return refuse_operation(call, group, packet);
  std::ranges::copy(payload, bytes.begin());
  Frame copy = packet.frame;
  copy.set_external_payload({bytes.data(), payload.size()}, wire::kNoBuffer);
  if (!wire::check_icrc(copy)) return call.count(Counter::kDropCorrupt);
  const auto announcement = wire::Announcement::parse(copy.payload());
  if (!announcement || packet.headers.bth.opcode != wire::Opcode::kRcWriteOnly) {
    return refuse_operation(call, group, packet);
  }
  return replicate_by(call, group, packet, Announcing{{}, *announcement});
}

void replicate_write(Call& call, OneSource& group, const GroupPacket& packet) {
  const net::WriteMode mode = group.writes;
  if (mode == net::WriteMode::kNone) {
    return refuse_operation(call, group, packet);
  }
  if (mode == net::WriteMode::kSameKey) return replicate_by(call, group, packet, AsItIs());
  if (!wire::opcode_info(packet.headers.bth.opcode).reth) {
    return replicate_by(call, group, packet, Continued());
  }
  const bool is_announced = mode == net::WriteMode::kPerRequest;
  const wire::Reth& reth = packet.headers.reth;
  if (is_announced && reth.rkey == wire::Announcement::kKey) {
    return replicate_announcement(call, group, packet);
  }
  // NICs ignore the key of a WRITE without data (IBTA 9.7.4.1.5): with immediate data it notifies
  // all members, whether they have regions or not.
  if (reth.dma_length == 0) return replicate_by(call, group, packet, AsItIs());
  return is_announced ? replicate_by(call, group, packet, AsAnnounced())
                      : replicate_by(call, group, packet, Addressed());
}

}  // namespace

void replicate(Call& call, OneSource& group, const GroupPacket& packet) {
  return wire::opcode_info(packet.headers.bth.opcode).write
             ? replicate_write(call, group, packet)
             : replicate_by(call, group, packet, AsItIs());
}

void try_gate(Call& call, OneSource& group, const Leader& leader) {
  Gate& gate = group.turn.gate();
  if (!gate.holds() || !gate_is_open(call, group)) return;
  const PathNo path = gate.path();
  // New packets for the gate go into the empty one.
  for (auto at = gate.take(); at != HeldFrames::kNone;) {
    const HeldFrames::Held& held = call.held[at];
    {
      const Handling handling(call, group.tree.paths[path].port, held.frame.icrc_state);
      call.count(Counter::kGateLetThrough);
      replicate(call, group, {held.frame, held.headers, path, leader});
    }
    auto [payload, next] = call.held.remove(at);
    call.out.released.push_back(std::move(payload));
    at = next;
  }
}

void refuse_operation(Call& call, OneSource& group, const GroupPacket& packet) {
  call.count(Counter::kDropNotMulticastable);
  if (!group.tree.paths[packet.path].is_host) return;
  const auto invalid = wire::Aeth::nak(wire::NakCode::kInvalidRequest);
  if (group.turn.source() == kNoPath) {
    group.traffic_class = wire::without_ecn(packet.headers.ip.tos);
  }
  if (group.turn.source() == packet.path) return fail_source(call, group, invalid);
  // A NAK acknowledges all PSNs below it, so it names the first PSN that this host can have
  // outstanding.
  const auto next = group.numbering.first_outstanding(group, packet.path, packet.psn());
  if (!next) return;
  send_feedback(call, group, packet.path, {}, invalid, *next);
}

}  // namespace cepheus::fabric
