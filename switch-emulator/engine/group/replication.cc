// A packet of the source is admitted (claim.h), placed in the data window, and copied to each path
// that lacks it. So a repeat goes only where it is missing, and now and then to all switches, so
// that those behind paths that lack nothing do not take the source for silent (turn.h). If no path
// lacks it, the source has lost the ACK and gets it again.
//
// WRITEs are checked at the switch of each host, by the group's mode:
//
//   same key      copied as they are
//   regions       the member's region of that number, within its bounds
//   per request   the target that the WRITE's announcement named for this host
//
// A WRITE that one local host does not allow goes to none of them (refusals.h). Packets held at the
// gate go through here, too, when it opens.
#include "switch-emulator/engine/group/replication.h"

#include <algorithm>
#include <array>
#include <utility>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group/feedback.h"
#include "switch-emulator/engine/group/group_order.h"
#include "switch-emulator/engine/registration/refusals.h"
#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/situation.h"

namespace cepheus::fabric {
namespace {

// Whether the path lacks the packet. Bound: `psn` has been admitted, so it is within the data
// window beyond `sent` and above an older turn. Paths' acknowledgements are within
// Turn::kMostUnderWay of it (Turn::accept()).
bool lacks(const Group& group, PathNo path, Psn psn) { return before(group.turn.acked(path), psn); }

const Region* region_of(const Group& group, PathNo at, const wire::Reth& write) {
  return group.regions ? group.regions->find_for(group.tree.paths[at].port, write) : nullptr;
}

const Announced* target_of(const Group& group, PathNo at, Psn psn) {
  if (!group.regions) return nullptr;
  return group.regions->find_announced(group.tree.paths[at].port, group.turn.place_of(psn));
}

bool allows(const Group& group, const Copies& copies, const GroupPacket& packet, PathNo host,
            Psn psn) {
  const wire::Reth& reth = packet.headers.reth;
  if (copies.kind == Copies::Kind::kAddressed) return region_of(group, host, reth) != nullptr;
  if (!group.checks.bounds) return true;
  const Announced* const target = target_of(group, host, psn);
  // A host that has acknowledged all before it has had its announcement, if there was one.
  return target != nullptr ? target->holds(reth.virtual_address, reth.dma_length)
                           : group.turn.acked(host) + 1 != psn;
}

// The host at this switch that lacks the WRITE's first packet and does not allow it: then none of
// them gets the packet (refusals.h). Hosts that have it are not checked: their regions may have gone
// since.
const Path* refuser_of(const Group& group, const Copies& copies, const GroupPacket& packet,
                       Psn psn) {
  for (PathNo i = 0; i < group.tree.paths.size(); ++i) {
    const Path& path = group.tree.paths[i];
    if (!path.is_host || i == group.turn.source() || !lacks(group, i, psn)) continue;
    if (!allows(group, copies, packet, i, psn)) return &path;
  }
  return nullptr;
}

// `target`: the member's own memory; the packet's address is an offset in it.
template <typename Target>
bool send_to_memory(Call& call, const Group& group, PathNo to, const GroupPacket& packet, Psn psn,
                    const Target& target) {
  wire::Reth reth = packet.headers.reth;
  reth.virtual_address += target.virtual_address;
  reth.rkey = target.rkey;
  return send_addressed(call, group, to, packet, psn, reth);
}

// The switch notes the host's target and sends a WRITE without data. A host with a full queue of
// targets gets none, and sends a NAK for it later.
bool announce(Call& call, Group& group, PathNo to, const GroupPacket& packet, Psn psn,
              const wire::Announcement& announcement) {
  const PortId port = group.tree.paths[to].port;
  // Without a target, no byte may be written.
  const auto target = announcement.find(call.port(port).host).value_or(wire::AnnouncedTarget());
  const Turn& turn = group.turn;
  const Announced noted{turn.place_of(psn) + 1, target.virtual_address, target.length, target.rkey};
  if (!group.own_regions().announcements().note(port, noted, turn.place_of(turn.acked(to)))) {
    call.lose(Counter::kDataCopies, Counter::kDropAnnouncementSpace);
    return false;
  }
  return send_without_data(call, group, to, packet, psn);
}

bool send_to_host(Call& call, Group& group, const Copies& copies, PathNo to,
                  const GroupPacket& packet, Psn psn) {
  switch (copies.kind) {
    case Copies::Kind::kAddressed:  // has a region, or the packet is refused
      return send_to_memory(call, group, to, packet, psn,
                            *region_of(group, to, packet.headers.reth));
    case Copies::Kind::kAnnouncing:
      return announce(call, group, to, packet, psn, *copies.announcement);
    case Copies::Kind::kAnnounced:
      if (const Announced* const target = target_of(group, to, psn)) {
        return send_to_memory(call, group, to, packet, psn, *target);
      }
      // Its announcement was lost on the way here. No key would make the packet harmless.
      CEPHEUS_SITUATION("a WRITE arrives, and its announcement was lost");
      call.lose(Counter::kDataCopies, Counter::kDropUnannounced);
      return false;
    case Copies::Kind::kAsItIs:
    case Copies::Kind::kContinued:
      break;
  }
  return send_data(call, group, to, packet, psn);
}

// Copies to every path but the source's. If `psn` has passed before, only to paths that lack it,
// and now and then to all switches. Returns the number of paths that lack it.
std::uint32_t copy_out(Call& call, Group& group, const GroupPacket& packet, Psn psn, bool repeat,
                       const Copies& copies) {
  const bool to_all = group.turn.goes_to_all(call.now, call.config.gate_age, repeat);
  if (repeat && to_all) CEPHEUS_SITUATION("a repeat goes to all switches");
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
    const bool is_sent = path.is_host ? send_to_host(call, group, copies, i, packet, psn)
                                      : send_data(call, group, i, packet, psn);
    group.stats.copies += is_sent;
  }
  return wanted;
}

// The same, with AckReq. The source has waited, and may have to wait again before it sets AckReq
// itself. A receiver that takes the packet would be silent meanwhile, and be evicted.
std::uint32_t copy_out_with_ack_request(Call& call, Group& group, const GroupPacket& packet,
                                        Psn psn, bool repeat, const Copies& copies) {
  Frame frame = packet.frame;
  wire::RoceHeaders headers = packet.headers;
  headers.bth.ack_request = true;
  wire::set_ack_request(std::span<std::uint8_t, wire::Bth::kSize>(
      frame.bytes.data() + wire::kBthOffset, wire::Bth::kSize));
  if (frame.icrc_state == wire::Icrc::kPresent) {
    frame.icrc = wire::patch_icrc(packet.frame.icrc, packet.frame.header(), frame.header(),
                                  frame.payload_len);
  }
  return copy_out(call, group, {frame, headers, packet.path, packet.leader}, psn, repeat, copies);
}

// The switch acts on an announcement, so it checks the ICRC, and does not pass it on to hosts. The
// source may still write the payload, so the switch checks and reads a copy.
void replicate_announcement(Call& call, Group& group, const GroupPacket& packet) {
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
  replicate(call, group, packet, {Copies::Kind::kAnnouncing, &*announcement});
}

}  // namespace

void replicate(Call& call, Group& group, const GroupPacket& packet, const Copies& copies) {
  if (claim_turn(call, group, packet) == Claim::kHandled) return;
  Turn& turn = group.turn;
  const auto accepted = turn.accept(packet.psn(), call.config.data_window);
  if (!accepted) return call.count(Counter::kDropDataWindow);
  const Psn psn = *accepted;
  group.traffic_class = wire::without_ecn(packet.headers.ip.tos);
  group.evidence[turn.source()].on_packet();
  if (copies.is_checked()) {
    if (const Path* const refuser = refuser_of(group, copies, packet, psn)) {
      CEPHEUS_SITUATION("a WRITE fits no memory that a member has named");
      return refuse_write(call, group, packet, psn, *refuser);
    }
    if (group.regions) group.regions->admit(psn);
  } else if (copies.kind == Copies::Kind::kContinued && group.regions &&
             group.regions->refuses(psn)) {
    CEPHEUS_SITUATION("the rest of a refused WRITE arrives");
    return call.count(Counter::kDropWriteRefused);
  }
  call.count(Counter::kDataTaken);
  ++group.stats.data_packets;
  group.stats.data_bytes += packet.frame.payload_len;
  const auto taken = static_cast<std::uint32_t>(group.stats.data_packets);
  if (group.loss_window.on_data(taken)) group.note_window_change();

  const bool ends_message = wire::opcode_info(packet.headers.bth.opcode).last;
  const auto repeat = turn.naks().on_data(call.now, psn);
  const bool needs_ack = repeat && repeat->needs_ack;
  const bool is_owed = ends_message || packet.headers.bth.ack_request || needs_ack;
  const bool is_new = turn.on_data(psn, ends_message);
  if (call.order != nullptr && turn.source() == group.tree.leader && call.order->takes_cnp()) {
    make_cnp(call, group, Counter::kCnpOnRequest);
  }
  group.feedback_timer->on_data(call.now, turn.source(), psn, is_owed, is_new, repeat);
  const std::uint32_t wanted =
      needs_ack ? copy_out_with_ack_request(call, group, packet, psn, !is_new, copies)
                : copy_out(call, group, packet, psn, !is_new, copies);
  if (is_new) {
    // No other member in this group: no feedback will say that it has arrived.
    if (wanted == 0) {
      CEPHEUS_SITUATION("a source sends to a group that has no other member left");
      acknowledge_to_source(call, group);
    }
  } else if (wanted > 0) {
    if (psn == turn.base()) extend_wait(call, group);
  } else if (group.conditions.answers_needless_repeats) {
    CEPHEUS_SITUATION("a source repeats what all have");
    call.count(Counter::kLostAggregateAnswered);
    acknowledge_to_source(call, group);
  }
}

void replicate_write(Call& call, Group& group, const GroupPacket& packet) {
  const net::WriteMode mode = group.writes;
  if (mode == net::WriteMode::kNone) return refuse_operation(call, group, packet);
  if (mode == net::WriteMode::kSameKey) return replicate(call, group, packet);
  if (!wire::opcode_info(packet.headers.bth.opcode).reth) {
    return replicate(call, group, packet, {Copies::Kind::kContinued});
  }
  const bool is_announced = mode == net::WriteMode::kPerRequest;
  const wire::Reth& reth = packet.headers.reth;
  if (is_announced && reth.rkey == wire::Announcement::kKey) {
    return replicate_announcement(call, group, packet);
  }
  // NICs ignore the key of a WRITE without data (IBTA 9.7.4.1.5): with immediate data it notifies
  // all members, whether they have regions or not.
  if (reth.dma_length == 0) return replicate(call, group, packet);
  replicate(call, group, packet,
            {is_announced ? Copies::Kind::kAnnounced : Copies::Kind::kAddressed});
}

void try_gate(Call& call, Group& group, const Leader& leader) {
  Gate& gate = group.turn.gate();
  if (!group.turn.admits_newcomer()) return;
  CEPHEUS_SITUATION("the gate opens, and holds packets");
  const PathNo path = gate.path();
  // New packets for the gate go into the empty one.
  for (auto at = gate.take(); at != HeldFrames::kNone;) {
    const HeldFrames::Held& held = call.held[at];
    {
      const Handling handling(call, group.tree.paths[path].port, held.frame.icrc_state);
      call.count(Counter::kGateLetThrough);
      const GroupPacket packet{held.frame, held.headers, path, leader};
      if (wire::opcode_info(held.headers.bth.opcode).write) {
        replicate_write(call, group, packet);
      } else {
        replicate(call, group, packet);
      }
    }
    auto [payload, next] = call.held.remove(at);
    call.out.released.push_back(std::move(payload));
    at = next;
  }
}

void refuse_operation(Call& call, Group& group, const GroupPacket& packet) {
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
