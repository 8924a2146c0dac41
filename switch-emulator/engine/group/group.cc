#include "switch-emulator/engine/group/group.h"

#include <algorithm>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/check.h"
#include "switch-emulator/engine/group/feedback.h"
#include "switch-emulator/engine/group/replication.h"
#include "switch-emulator/engine/registration/claim.h"
#include "wire/situation.h"

namespace cepheus::fabric {
namespace {

const Rebasing kRebasing(true), kRebasingByArrival(false);
const HostSync kHostSync(true), kHostSyncWithoutWait(false);

const Numbering& numbering_of(const net::Rules& rules) {
  if (rules.source_change == net::SourceChange::kHostSync) {
    return rules.handover_rnr ? kHostSync : kHostSyncWithoutWait;
  }
  return rules.psn_from_state ? kRebasing : kRebasingByArrival;
}

}  // namespace

Group::Group(const Mft& mft, const SwitchConfig& config)
    : tree(mft),
      numbering(numbering_of(config.rules)),
      writes(config.rules.write_mode),
      checks(config.rules),
      conditions(config.rules),
      start(wire::group_start_psn(mft.id, mft.epoch)),
      turn(start, config.rules),
      cnps(make_cnp_selector(config.rules.cnp_policy, config.cnp_window)),
      loss_window(config.rules.window_after_loss),
      feedback_timer(std::make_unique<FeedbackTimer>(config.rules)),
      last_acks(std::make_unique<LastAcks>(config.rules.last_ack_again)) {}

void Group::on_packet(Call& call, const GroupPacket& packet) {
  const wire::Opcode opcode = packet.headers.bth.opcode;
  const wire::OpcodeInfo& info = wire::opcode_info(opcode);
  const bool is_host = tree.paths[packet.path].is_host;
  // A host sends to the virtual QP; between switches, packets from the McstID are feedback.
  const bool is_feedback = opcode == wire::Opcode::kRcAcknowledge || opcode == wire::Opcode::kCnp;
  const bool to_group = packet.headers.ip.destination == tree.id;
  if (is_host ? packet.headers.bth.destination_qp != wire::kVirtualQpn : is_feedback == to_group) {
    call.count(Counter::kDropMalformed);
  } else if (opcode == wire::Opcode::kRcAcknowledge) {
    take_feedback(call, *this, packet);
  } else if (opcode == wire::Opcode::kCnp) {
    take_cnp(call, *this, packet);
  } else if (info.multicastable() && info.write) {
    replicate_write(call, *this, packet);
  } else if (info.multicastable() && info.send && !info.ieth) {
    replicate(call, *this, packet);
  } else if (info.request() && service_of(opcode) == wire::Service::kRc) {
    refuse_operation(call, *this, packet);
  } else {
    call.count(Counter::kDropNotMulticastable);
  }
  if (turn.gate().holds()) try_gate(call, *this, packet.leader);
  arm(call);
}

// Most packets only make the time later. The timer looks again when the deadline has passed.
void Group::arm(const Call& call) {
  if (feedback_timer->take_sooner()) {
    set_deadline(std::min(deadline(), feedback_timer->next(call, *this)));
  }
  set_deadline(std::min(deadline(), last_acks->next()));
}

void Group::note_loss() {
  if (!loss_window.on_loss(static_cast<std::uint32_t>(stats.data_packets))) return;
  CEPHEUS_RARE_SITUATION("losses shrink a group's window");
  note_window_change();
}

void Group::on_timer(Call& call) {
  const Instant due = request_if_overdue(call, *this);
  set_deadline(std::min(due, repeat_last_acks(call, *this)));
}

void Group::on_path_added() {
  evidence.emplace_back();
  feedback_timer->on_path_added();
  turn.on_path_added();
  cnps->on_path_added();
}

void Group::on_path_removed(Call& call, const Removed& removed) {
  const auto& [gone, last, port, leader] = removed;
  if (turn.gate().path() == gone) {
    if (turn.gate().holds())
      CEPHEUS_RARE_SITUATION("a path leaves while the gate holds its packets");
    empty_gate(call, *this, port);
  }
  if (turn.source() == gone && !turn.is_finished())
    CEPHEUS_RARE_SITUATION("a source leaves while members lack its packets");
  if (regions) regions->remove(port);
  evidence[gone] = evidence[last];
  evidence.pop_back();
  feedback_timer->on_path_removed(gone, last);
  last_acks->on_path_removed(gone, last);
  turn.on_path_removed(gone, last);
  cnps->on_path_removed(gone, last);
  recheck(call, *this);
  if (turn.gate().holds()) try_gate(call, *this, leader);
  arm(call);  // the slowest paths may be others now
}

void Group::on_port_down(PathNo path) {
  const Gate& gate = turn.gate();
  if (gate.holds() && path == turn.source())
    CEPHEUS_RARE_SITUATION("a source's port goes down while another waits at the gate");
  if (gate.holds() && path == gate.path())
    CEPHEUS_RARE_SITUATION("a port goes down while the gate holds its packets");
  evidence[path].was_down = true;
  evidence[path].is_back = false;
}

void Group::on_port_up(PathNo path) {
  if (!turn.is_finished())
    CEPHEUS_SITUATION("a member's port is up again while a turn waits for members");
  evidence[path].is_back = evidence[path].was_down;
}

void Group::release_held(Call& call) {
  const Gate& gate = turn.gate();
  if (gate.holds()) empty_gate(call, *this, tree.paths[gate.path()].port);
}

std::uint16_t Group::register_flags() const { return numbering.register_flags(); }

Behaviour::Published Group::on_publication(PathNo path, const wire::Publication& publication) {
  const bool is_announced = (publication.header.flags & wire::Publication::kAnnounced) != 0;
  const bool has_regions = publication.count > 0;
  const bool is_served = is_announced ? writes == net::WriteMode::kPerRequest && !has_regions
                                      : writes == net::WriteMode::kRegions || !has_regions;
  if (!is_served) return Published::kNotServed;
  const auto taken =
      own_regions().publish(tree.paths[path].port, publication.header.seq, publication.list());
  return taken == Regions::Taken::kTooOld ? Published::kTooOld : Published::kYes;
}

// The source, while some member lacks a part of its turn. Its count is that of its packets, which
// only its own leaf sees in full.
HostReport Group::report(const Call& call, PathNo path, bool is_up) const {
  const Evidence& seen = evidence[path];
  const bool is_down = seen.was_down || !is_up;
  const int down = is_down ? wire::kMemberDown : 0;
  const auto flags = [](int all) { return static_cast<std::uint8_t>(all); };
  if (path == turn.source()) {
    const bool owes = !turn.is_finished();
    if (!is_down && !owes) return {};
    return {flags(down | wire::kMemberSource | (owes ? wire::kMemberOwes : 0)),
            static_cast<std::uint32_t>(stats.data_packets) & Psn::kMask};
  }
  const bool has_repeats = seen.unanswered.go_on(call.now) || !conditions.lagging_is_silence;
  const bool lags = before(turn.acked(path), turn.sent());  // within Turn::kMostUnderWay
  const int owes = lags && has_repeats ? wire::kMemberOwes : 0;
  const int late = lags && !has_repeats && !is_down ? wire::kMemberLate : 0;
  return {flags(down | owes | late), seen.packets};
}

void Group::list_copies(PortId ingress, std::vector<PortId>& out) const {
  for (const Path& path : tree.paths) {
    if (path.port != ingress) out.push_back(path.port);
  }
}

void Group::begin_turn(const Turn::Newcomer& newcomer) {
  turn.begin(newcomer, numbering.counts_turns());
  feedback_timer->reset();
  if (regions) regions->on_turn();
}

bool Group::jump(std::uint64_t packets) {
  if (!turn.jump(packets)) return false;
  feedback_timer->reset();
  last_acks->reset();
  return true;
}

Regions& Group::own_regions() {
  if (!regions) regions = std::make_unique<Regions>(checks);
  return *regions;
}

void Group::check_consistent(std::size_t max_held) const {
  must(evidence.size() == tree.paths.size(), "evidence of other paths than there are");
  must(feedback_timer->paths() == tree.paths.size(), "timers of other paths than there are");
  const auto is_member = [&](PortId port) {
    return tree.find(port) != kNoPath && tree.paths[tree.find(port)].is_host;
  };
  must(!regions || regions->is_consistent(is_member), "regions of nobody, or out of order");
  turn.check_consistent(tree.paths.size(), max_held);
}

}  // namespace cepheus::fabric
