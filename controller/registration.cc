// Setting a group up, to its activation or failure; registration_in_operation.cc has what follows.
// A step ends when all have confirmed it; a repeat names only the members that have not. Meanwhile
// REFRESH keeps tables whose members have all confirmed.
//
// Hosts speak for themselves: a CONFIRM's other names are skipped, and a REJECT with another name
// is dropped. Bounds: 2 to kMaxMembers members, one for each host. Switches that change the source
// by different methods fail the group. So do `timeout` and `silence`.
#include "controller/registration.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "controller/reject_text.h"
#include "wire/situation.h"

namespace cepheus::mrp {

using wire::ErrorCode;
using wire::kNever;
using wire::MrpReject;
using wire::MrpType;

constexpr std::size_t kMaxMembers = 0xFFFF;  // the count in CONNECT's and ACTIVATE's flags

Registration::Registration(const RegistrationConfig& config, McstId id, std::uint16_t epoch)
    : config_(config),
      id_(id),
      epoch_(epoch),
      path_{config.path_mtu, 0},
      suspects_(10 * config.request_again),
      late_(10 * config.request_again) {
  assert(!config.reduction || config.lost_member == LostMember::kEndsGroup);
}

void Registration::set_state(State state, const char* reason) {
  assert(state_ != State::kGone);
  state_ = state;
  state_reason_ = reason;
}

bool Registration::is_setting_up() const {
  return state_ == State::kRegistering || state_ == State::kConnecting ||
         state_ == State::kActivating;
}

// The message that members have to confirm in this state.
std::optional<MrpType> Registration::step() const {
  switch (state_) {
    case State::kRegistering:
      return MrpType::kRegister;
    case State::kConnecting:
      return MrpType::kConnect;
    case State::kActivating:
      return MrpType::kActivate;
    case State::kUnregistering:
      return MrpType::kUnregister;
    default:
      return std::nullopt;
  }
}

MrpMessage Registration::message(MrpType type) const {
  MrpMessage m;
  m.header = {.type = type, .epoch = epoch_, .mcst_id = id_, .instance = config_.instance};
  // All but the leader are behind its switch.
  if (type == MrpType::kConnect || type == MrpType::kActivate) {
    m.header.flags = static_cast<std::uint16_t>(members_.size() - 1);
  }
  const wire::MrpPath& path = type == MrpType::kActivate ? first_path_ : path_;
  const bool has_path = type == MrpType::kConnect ||
                        (type == MrpType::kActivate && path != wire::MrpPath()) ||
                        (type == MrpType::kRefresh && knows_window_);
  if (has_path) m.path = path;
  if (type == MrpType::kRegister) m.reduction = config_.reduction;
  if (type == MrpType::kRegister && config_.lost_member == LostMember::kEndsGroup) {
    m.header.flags = wire::MrpHeader::kLossEnds;
  }
  return m;
}

void Registration::send_to_group(MrpType type, Outbox& out) const {
  out.messages.push_back(message(type));
}

// In as many packets as it takes.
void Registration::send_list(MrpType type, std::span<const MrpMember> list, Outbox& out) const {
  const std::size_t per_packet =
      config_.reduction ? MrpMessage::kMaxWithReduction : MrpMessage::kMaxMembers;
  const std::size_t total = (list.size() + per_packet - 1) / per_packet;
  for (std::size_t seq = 0; seq < total; ++seq) {
    out.messages.push_back(message(type));
    MrpMessage& m = out.messages.back();
    m.header.seq = static_cast<std::uint16_t>(seq);
    m.header.total = static_cast<std::uint16_t>(total);
    const std::size_t first = seq * per_packet;
    for (const MrpMember& member : list.subspan(first, std::min(per_packet, list.size() - first))) {
      m.add(member);
    }
  }
}

// Lists the members without a CONFIRM. REGISTER also names the leader: a switch that missed an
// earlier list would know no queue pair there.
void Registration::request_again(MrpType type, Outbox& out) const {
  std::vector<MrpMember> list = missing();
  if (type == MrpType::kRegister) list.push_back(members_[members_.find(config_.host)]);
  send_list(type, list, out);
}

wire::Result<void> Registration::start(Instant now, std::span<const MrpMember> members,
                                       Outbox& out) {
  if (state_ != State::kIdle) {
    return wire::invalid("registration was started before: use a fresh one");
  }
  if (members.size() < 2) {
    return wire::invalid("a group needs the leader and at least one more member");
  }
  if (config_.reduction && !config_.reduction->is_valid()) {
    return wire::invalid("a reduction group's window is a power of two up to " +
                         std::to_string(wire::MrpReduction::kMostWindow) +
                         ", and its unit a multiple of " +
                         std::to_string(wire::MrpReduction::kUnitStep) + " bytes up to " +
                         std::to_string(wire::MrpReduction::kMostUnit));
  }
  if (members.size() > kMaxMembers) {
    return wire::invalid("too many members: a group has 65535 at most");
  }
  std::vector<MrpMember> sorted(members.begin(), members.end());
  if (config_.reduction) {
    config_.reduction->ascends = std::ranges::is_sorted(members, {}, &MrpMember::host);
  }
  std::ranges::sort(sorted, {}, &MrpMember::host);
  const auto twice = std::ranges::adjacent_find(sorted, {}, &MrpMember::host);
  if (twice != sorted.end()) {
    return wire::invalid("host " + twice->host.to_string() +
                         " is listed twice: name one member for each host");
  }
  if (!std::ranges::binary_search(sorted, config_.host, {}, &MrpMember::host)) {
    return wire::invalid("the leader " + config_.host.to_string() +
                         " is not among the members: add it");
  }
  members_ = MemberList(std::move(sorted));
  latest_ = now + config_.timeout;
  refreshed_at_ = now;
  begin_step(now, State::kRegistering, "started", out);
  set_give_up(now);
  check_consistent();
  return {};
}

void Registration::begin_step(Instant now, State state, const char* reason, Outbox& out) {
  set_state(state, reason);
  members_.expect_confirmations(config_.host);
  repeat_ = Backoff(config_.repeats.set_up, now);
  if (state == State::kRegistering) {
    send_list(MrpType::kRegister, members_.all(), out);
  } else {
    spread_ = first_path_ = path_;
    send_to_group(*step(), out);
  }
  repeat_.sent(now);
}

void Registration::set_give_up(Instant last_message) {
  const bool awaits_members =
      members_.missing_count() > 0;  // else its own queue pair, which sends nothing
  give_up_ = config_.silence && awaits_members ? std::min(latest_, last_message + *config_.silence)
                                               : latest_;
}

// A switch with confirmed members only would receive no repeats, take the leader for dead and
// forget the table.
void Registration::keep_pending(Instant now, Outbox& out) {
  if (now - refreshed_at_ < config_.refresh_pending) return;
  refreshed_at_ = now;
  CEPHEUS_SITUATION("a registration refreshes its tables before all have confirmed");
  send_to_group(MrpType::kRefresh, out);
}

void Registration::on_message(Instant now, Ipv4 from, const MrpMessage& message, Outbox& out) {
  const wire::MrpHeader& h = message.header;
  if (h.mcst_id != id_ || h.epoch != epoch_ || h.instance != config_.instance) return;
  // It answers a REFRESH, and shows nothing of the switches behind: QUERYs go on.
  if (h.type == MrpType::kReport && message.path) {
    take_path(now, *message.path, out);
    return check_consistent();
  }
  last_message_at_ = now;
  if (h.type == MrpType::kConfirm) {
    if (is_setting_up()) set_give_up(now);
    on_confirm(now, from, message, out);
  } else if (h.type == MrpType::kReject) {
    on_reject(now, from, message, out);
  } else if (h.type == MrpType::kReport) {
    on_report(now, message, out);
  } else if (h.type == MrpType::kComplain) {
    on_complaint(now, from, message, out);
  }
  check_consistent();
}

bool Registration::agrees_on_method(const wire::MrpHeader& confirm) {
  const bool host_sync = (confirm.flags & wire::MrpHeader::kHostSync) != 0;
  if (!host_sync_) host_sync_ = host_sync;
  return *host_sync_ == host_sync;
}

void Registration::on_confirm(Instant now, Ipv4 from, const MrpMessage& message, Outbox& out) {
  if (message.header.flags == static_cast<std::uint16_t>(MrpType::kEvict)) {
    return evictions_.on_confirmed(message.list());
  }
  const auto awaited = step();
  const int answered = message.header.flags & ~wire::MrpHeader::kHostSync;
  if (!awaited || answered != static_cast<int>(*awaited)) {
    CEPHEUS_SITUATION("a CONFIRM comes after its step");
    return;
  }
  if (awaited == MrpType::kRegister && !agrees_on_method(message.header)) {
    const std::string text = "the switches of " + from.to_string() +
                             " and of other members change a group's source differently: give all "
                             "the same source_change";
    return fail(now, {ErrorCode::kRefused, text}, MrpReject::kNone, out);
  }
  if (message.path) take_path(now, *message.path, out);
  if (state_ == State::kFailed) return;
  const bool from_member = members_.has(from);  // and not from a switch
  if (message.tree && !from_member && message.tree->has(wire::MrpTree::kGroupIsFlat))
    is_flat_ = true;
  for (const MrpMember& m : message.list()) {
    // A switch confirms for the members behind it, and drops a host's CONFIRM for other hosts.
    if (from_member && m.host != from) continue;
    const std::size_t i = members_.find(m.host);
    if (i == members_.size()) continue;
    if (members_.has_confirmed(i)) CEPHEUS_SITUATION("a member confirms twice");
    if (members_[i].is_same_as(m) && !members_.has_confirmed(i)) members_.confirm(i);
  }
  go_on(now, out);
}

void Registration::release(Instant now, Outbox& out) {
  if (std::exchange(held_, nullptr) != nullptr && state_ == State::kConnecting) go_on(now, out);
  check_consistent();
}

// The next step, if all have confirmed this one.
void Registration::go_on(Instant now, Outbox& out) {
  if (members_.missing_count() > 0) return;
  if (held_ != nullptr && state_ == State::kConnecting) {
    CEPHEUS_RARE_SITUATION("all members have confirmed before the leader's own memory");
    return set_give_up(now);
  }
  switch (state_) {
    case State::kRegistering:
      path_.round_mtu();
      begin_step(now, State::kConnecting, "every member takes part", out);
      break;
    case State::kConnecting:
      begin_step(now, State::kActivating, "every member is connected", out);
      set_give_up(now);
      break;
    case State::kActivating:
      set_state(State::kActive, "every member is active");
      give_up_ = kNever;
      repeat_ = Backoff(config_.repeats.refresh, now + config_.repeats.refresh.first);
      if (path_ != spread_) {
        CEPHEUS_SITUATION("the path has changed between ACTIVATE and its last CONFIRM");
        spread_path(now, out);
      }
      break;
    default:
      set_state(State::kGone, "every member confirmed unregistering");
      repeat_.stop();
  }
}

void Registration::on_reject(Instant now, Ipv4 from, const MrpMessage& message, Outbox& out) {
  const auto reason = static_cast<MrpReject>(message.header.flags);
  const bool is_unreachable = reason == MrpReject::kPathLost || reason == MrpReject::kIncomplete;
  // Of the leader's memory or port, by its own switch.
  const bool may_name_leader =
      reason == MrpReject::kRemoteAccess || reason == MrpReject::kWriteMode ||
      reason == MrpReject::kTooLong || reason == MrpReject::kMismatch ||
      reason == MrpReject::kResultRefused || reason == MrpReject::kOperation;
  const bool in_operation = is_unreachable || may_name_leader;
  if (state_ == State::kActive && !in_operation) {
    return on_member_failed(now, from, message, out);
  }
  if (!is_setting_up() && state_ != State::kActive) return;
  // Members reject for themselves. Switches reject for members, or name none. All other REJECTs are
  // forged. A member of another version can't read the member that REGISTER names.
  const bool from_member = members_.has(from);
  if (from_member && message.list().empty() && reason != MrpReject::kVersion) return;
  const auto forged = [&](const MrpMember& m) {
    const bool is_self = m.host == config_.host && !may_name_leader;
    return is_self || !members_.has(m.host) || (from_member && m.host != from);
  };
  if (std::any_of(message.list().begin(), message.list().end(), forged)) {
    CEPHEUS_RARE_SITUATION("a REJECT that its sender may not send");
    return;
  }
  if (in_operation && from_member) return;
  if (state_ == State::kConnecting || state_ == State::kActivating)
    CEPHEUS_SITUATION("a group is rejected between its REGISTER and ACTIVATE");
  if (state_ == State::kActive) CEPHEUS_SITUATION("an active group loses its way");
  fail(now, {reject_code(reason), reject_text(reason, from, id_, message.list())}, reason, out);
}

void Registration::fail(Instant now, wire::Error error, MrpReject reject, Outbox& out) {
  error_ = std::move(error);
  set_state(State::kFailed, error_.code == ErrorCode::kTimedOut ? "timed out" : "refused");
  reject_ = reject;
  give_up_ = next_request_ = kNever;
  evictions_.stop();
  repeat_ = Backoff(config_.repeats.unregister, now);
  send_unregister(now, out);
}

void Registration::give_up(Instant now, std::string why, Outbox& out) {
  if (!is_setting_up() && state_ != State::kActive) return;
  fail(now, {ErrorCode::kUnavailable, std::move(why)}, MrpReject::kMemberFailed, out);
  check_consistent();
}

void Registration::on_timer(Instant now, Outbox& out) {
  if (now >= give_up_) {
    const bool is_silence = give_up_ < latest_;
    if (state_ == State::kConnecting || state_ == State::kActivating)
      CEPHEUS_SITUATION("members fall silent between REGISTER and ACTIVATE");
    const Duration limit = is_silence ? *config_.silence : config_.timeout;
    const std::string text =
        missing().empty() ? held_ : time_out_text(missing(), members_.size(), limit, is_silence);
    fail(now, {ErrorCode::kTimedOut, text}, MrpReject::kNone, out);
    return check_consistent();
  }
  if (now >= evictions_.deadline()) {
    send_list(MrpType::kEvict, evictions_.take_due(now), out);
  }
  if (now >= next_request_) {
    // QUERYs continue only while members answer, and while others wait for late members.
    const bool is_waited_for = now - requested_at_ <= config_.asker_time_limit && late_.any(now);
    next_request_ = kNever;
    if (suspects_.any(now) || is_waited_for) query(now, out);
  }
  if (repeat_.is_due(now)) {
    switch (state_) {
      case State::kRegistering:
      case State::kConnecting:
      case State::kActivating:
        if (state_ == State::kConnecting) CEPHEUS_SITUATION("CONNECT is repeated");
        if (state_ == State::kActivating) CEPHEUS_SITUATION("ACTIVATE is repeated");
        request_again(*step(), out);
        keep_pending(now, out);
        repeat_.sent(now);
        break;
      case State::kActive:
        send_to_group(MrpType::kRefresh, out);
        repeat_.sent(now);
        break;
      case State::kFailed:
      case State::kUnregistering:
        send_unregister(now, out);
        break;
      case State::kIdle:
      case State::kGone:
        assert(false && "no timer in this state");
    }
  }
  check_consistent();
}

Instant Registration::deadline() const {
  return std::min({give_up_, repeat_.deadline(), next_request_, evictions_.deadline()});
}

void Registration::check_consistent() const {
#ifndef NDEBUG
  members_.check_consistent();
  assert(is_setting_up() == (give_up_ != kNever));
  assert(!is_setting_up() || members_.missing_count() > 0 || held_ != nullptr);
  assert((state_ != State::kIdle && state_ != State::kGone) || deadline() == kNever);
#endif
}

}  // namespace cepheus::mrp
