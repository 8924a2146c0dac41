// CONNECT is acted upon in kRegistered only; without a path MTU it is ignored. UNREGISTER is
// confirmed in every state but kWaiting, for the leader may have missed an earlier CONFIRM. REJECT
// ends the membership only if it names nobody and does not come from the leader: then the member's
// switch has no table.
//
// After the end a REGISTER of another group is refused with "not member", and a late duplicate gets
// no answer. A member that failed repeats its REJECT until the leader answers or Repeats().leave is
// used up.
#include "controller/membership.h"

#include <algorithm>
#include <cassert>

#include "wire/situation.h"

namespace cepheus::mrp {

using wire::MrpReject;
using wire::MrpType;

void Membership::set_state(State state, const char* reason) {
  assert(state_ != State::kGone && state_ != State::kFailed);
  state_ = state;
  state_reason_ = reason;
}

bool Membership::is_named_by(const MrpMessage& message) const {
  const auto list = message.list();
  return std::ranges::any_of(
      list, [this](const MrpMember& m) { return m.is_same_as(self_) && m.token == self_.token; });
}

bool Membership::is_of_group(const wire::MrpHeader& header) const {
  return state_ != State::kWaiting && header.mcst_id == id_ && header.epoch == epoch_ &&
         header.instance == instance_;
}

bool Membership::is_of_this_group(Ipv4 from, const wire::MrpHeader& header) const {
  return from == leader_ && is_of_group(header);
}

void Membership::answer(MrpType type, std::uint16_t flags, Outbox& out) const {
  MrpMessage m;
  m.header = {.type = type, .flags = flags, .epoch = epoch_, .mcst_id = id_, .instance = instance_};
  m.add({self_.host, self_.qpn});
  out.messages.push_back(m);
}

// The leader, which no switch sends a REGISTER to, learns the method from its members.
void Membership::confirm(MrpType step, Outbox& out) const {
  const bool is_first = step == MrpType::kRegister;
  const int method = is_first && host_sync_ ? wire::MrpHeader::kHostSync : 0;
  answer(MrpType::kConfirm, static_cast<std::uint16_t>(static_cast<int>(step) | method), out);
  if (is_first && path_mtu_ != 0) out.messages.back().path = wire::MrpPath{path_mtu_, 0};
}

void Membership::refuse(const wire::MrpHeader& requested, MrpReject reason, Outbox& out) const {
  MrpMessage m;
  m.header = requested;
  m.header.type = MrpType::kReject;
  m.header.flags = static_cast<std::uint16_t>(reason);
  m.header.seq = 0;
  m.header.total = 1;
  m.add({self_.host, self_.qpn});
  out.messages.push_back(m);
}

Membership::Task Membership::on_message(Instant, Ipv4 from, const MrpMessage& message,
                                        Outbox& out) {
  const wire::MrpHeader& h = message.header;
  switch (h.type) {
    case MrpType::kRegister:
      return is_named_by(message) ? on_register(from, message, out) : Task::kNone;
    case MrpType::kConnect:
      return on_connect(from, message, out);
    case MrpType::kActivate:
      if (!is_of_this_group(from, h)) return Task::kNone;
      if (state_ != State::kConnected && state_ != State::kActive) {
        CEPHEUS_RARE_SITUATION("ACTIVATE finds a member that is not connected");
        return Task::kNone;
      }
      if (state_ == State::kActive) CEPHEUS_SITUATION("ACTIVATE comes again to an active member");
      confirm(MrpType::kActivate, out);
      if (state_ == State::kActive) return Task::kNone;
      path_.window = message.path.value_or(wire::MrpPath()).window;
      is_flat_ = message.tree && message.tree->has(wire::MrpTree::kGroupIsFlat);
      set_state(State::kActive, "the leader activated the group");
      return Task::kActivated;
    case MrpType::kUnregister:
      if (!is_of_this_group(from, h)) return Task::kNone;
      confirm(MrpType::kUnregister, out);
      return end(h, state_ == State::kActive
                        ? "the leader unregistered the group"
                        : "the leader unregistered the group before it was active");
    case MrpType::kGiveUp:
      return on_give_up(from, message);
    case MrpType::kReject:
      // A REJECT of a switch, which names no member. A host rejects for itself, and to the leader
      // only.
      if (!is_of_group(h) || leader_ == self_.host || from == leader_ || message.member_count > 0) {
        return Task::kNone;
      }
      CEPHEUS_SITUATION("a member's switch has forgotten its group");
      return end(h, "its switch has no table of the group");
    case MrpType::kRefresh:
      if (state_ != State::kActive || !is_of_this_group(from, h) || !message.path) {
        return Task::kNone;
      }
      path_.window = message.path->window;
      return Task::kRenewed;
    case MrpType::kAlive:
      if (state_ != State::kActive || !is_of_this_group(from, h)) return Task::kNone;
      return h.flags == wire::MrpHeader::kPresence ? Task::kStands : Task::kWait;
    default:
      return Task::kNone;
  }
}

void Membership::complain(Outbox& out) const {
  if (state_ == State::kActive) answer(MrpType::kComplain, 0, out);
}

// The other end may have forgotten the port of this process.
void Membership::send_request(Outbox& out) const {
  if (state_ != State::kActive) return;
  answer(MrpType::kComplain, wire::MrpHeader::kPresence, out);
  out.messages.back().members[0].control_port = self_.control_port;
}

void Membership::leave(Instant now, Outbox& out) {
  const bool has_joined =
      state_ != State::kWaiting && state_ != State::kFailed && state_ != State::kGone;
  if (leader_ == self_.host || !has_joined) return;
  fail(now, "its owner's side failed", out);
}

void Membership::fail(Instant now, const char* reason, Outbox& out) {
  reject_ = MrpReject::kMemberFailed;
  set_state(State::kFailed, reason);
  leave_ = Backoff(Repeats().leave, now);
  send_left(now, out);
}

void Membership::send_left(Instant now, Outbox& out) {
  answer(MrpType::kReject, static_cast<std::uint16_t>(MrpReject::kMemberFailed), out);
  leave_.sent(now);
  if (leave_.is_used_up()) leave_.stop();
}

void Membership::on_timer(Instant now, Outbox& out) {
  if (leave_.is_due(now)) send_left(now, out);
}

void Membership::take_up(Ipv4 leader, const wire::MrpHeader& header) {
  id_ = header.mcst_id;
  epoch_ = header.epoch;
  instance_ = header.instance;
  leader_ = leader;
}

Membership::Task Membership::on_register(Ipv4 from, const MrpMessage& message, Outbox& out) {
  const wire::MrpHeader& h = message.header;
  if (state_ == State::kWaiting) {
    // The group is of another kind than this member.
    if (message.reduction.has_value() != reduces_) {
      refuse(h, MrpReject::kNotMember, out);
      return Task::kNone;
    }
    // A switch has checked it; this member's answer names the cause if a switch did not.
    if (message.reduction && !message.reduction->is_valid()) {
      refuse(h, MrpReject::kMalformed, out);
      return Task::kNone;
    }
    if (message.reduction && !message.reduction->has_known_kind()) {
      refuse(h, MrpReject::kNotServed, out);
      return Task::kNone;
    }
    take_up(from, h);
    reduction_ = message.reduction.value_or(wire::MrpReduction());
    host_sync_ = (h.flags & wire::MrpHeader::kHostSync) != 0;
    set_state(State::kRegistered, "a leader named this member");
    confirm(MrpType::kRegister, out);
    return Task::kRegistered;
  }
  if (!is_of_this_group(from, h)) {
    const bool same_group = from == leader_ && h.instance == instance_ && h.mcst_id == id_;
    if (same_group && !wire::newer_epoch(h.epoch, epoch_)) return Task::kNone;  // a late duplicate
    const bool over = state_ == State::kGone || state_ == State::kFailed;
    refuse(h, over ? MrpReject::kNotMember : MrpReject::kIdInUse, out);
  } else if (state_ != State::kFailed && state_ != State::kGone) {
    confirm(MrpType::kRegister, out);
  }
  return Task::kNone;
}

Membership::Task Membership::on_connect(Ipv4 from, const MrpMessage& message, Outbox& out) {
  // Without the path MTU members would have different ones.
  if (!is_of_this_group(from, message.header) || !message.path) return Task::kNone;
  if (state_ == State::kConnected || state_ == State::kActive) confirm(MrpType::kConnect, out);
  if (state_ != State::kRegistered) return Task::kNone;
  path_.mtu = message.path->mtu;
  set_state(State::kConnecting, "every member takes part");
  return Task::kConnect;
}

// The leader gave the registration up, and sent this to this member alone. A member that has not
// received REGISTER knows its leader by the token. A member that has answered also knows it by that
// registration.
Membership::Task Membership::on_give_up(Ipv4 from, const MrpMessage& message) {
  const wire::MrpHeader& h = message.header;
  const bool waits = state_ == State::kWaiting;
  if (waits ? !is_named_by(message) : !is_of_this_group(from, h)) return Task::kNone;
  if (waits) CEPHEUS_SITUATION("a member gets GIVEUP before REGISTER");
  if (waits) take_up(from, h);
  return end(h, state_ == State::kActive ? "the leader answers that the group has ended"
                                         : "the leader gave the registration up");
}

Membership::Task Membership::end(const wire::MrpHeader& why, const char* reason) {
  leave_.stop();
  if (state_ == State::kConnecting) CEPHEUS_RARE_SITUATION("a group ends while a member connects");
  if (state_ == State::kGone || state_ == State::kFailed) return Task::kNone;
  reject_ = static_cast<MrpReject>(why.flags);
  set_state(state_ == State::kActive ? State::kGone : State::kFailed, reason);
  return Task::kDissolved;
}

bool Membership::lead(McstId id, std::uint16_t epoch, std::uint32_t instance) {
  if (state_ != State::kWaiting) return false;
  take_up(self_.host, {.epoch = epoch, .mcst_id = id, .instance = instance});
  set_state(State::kConnected, "leads the group itself");
  return true;
}

void Membership::connected(Instant now, bool ok, Outbox& out) {
  if (state_ != State::kConnecting) return;  // the group has ended meanwhile
  if (ok) {
    set_state(State::kConnected, "its queue pair is connected");
    confirm(MrpType::kConnect, out);
  } else {
    fail(now, "its queue pair could not be connected", out);
  }
}

}  // namespace cepheus::mrp
