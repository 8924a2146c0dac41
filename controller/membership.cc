#include "controller/membership.h"

#include <algorithm>
#include <cassert>

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
  return std::any_of(list.begin(), list.end(), [this](const MrpMember& m) {
    return m.is_same_as(self_) && m.token == self_.token;
  });
}

bool Membership::is_of_this_group(Ipv4 from, const wire::MrpHeader& header) const {
  return state_ != State::kWaiting && from == leader_ && header.mcst_id == id_ &&
         header.epoch == epoch_ && header.instance == instance_;
}

void Membership::answer(MrpType type, std::uint16_t flags, Actions& out) const {
  MrpMessage m;
  m.header.type = type;
  m.header.flags = flags;
  m.header.epoch = epoch_;
  m.header.mcst_id = id_;
  m.header.instance = instance_;
  m.add({self_.host, self_.qpn});
  out.messages.push_back({leader_, m});
}

// The leader, which no switch sends a REGISTER to, learns the method from its members.
std::uint16_t Membership::confirmed_flags() const {
  const int method = host_sync_ ? wire::MrpHeader::kHostSync : 0;
  return static_cast<std::uint16_t>(static_cast<int>(MrpType::kRegister) | method);
}

void Membership::refuse(Ipv4 from, const wire::MrpHeader& asked, MrpReject reason,
                        Actions& out) const {
  MrpMessage m;
  m.header = asked;
  m.header.type = MrpType::kReject;
  m.header.flags = static_cast<std::uint16_t>(reason);
  m.header.seq = 0;
  m.header.total = 1;
  m.add({self_.host, self_.qpn});
  out.messages.push_back({from, m});
}

Membership::Task Membership::on_message(Instant, Ipv4 from, const MrpMessage& message,
                                        Actions& out) {
  const wire::MrpHeader& h = message.header;
  switch (h.type) {
    case MrpType::kRegister:
      return is_named_by(message) ? on_register(from, message, out) : Task::kNone;
    case MrpType::kActivate:
      if (!is_of_this_group(from, h)) return Task::kNone;
      if (state_ == State::kConfirmed) {
        set_state(State::kActive, "the leader activated the group");
        answer(MrpType::kConfirm, static_cast<std::uint16_t>(MrpType::kActivate), out);
        return Task::kActivated;
      }
      if (state_ == State::kActive) {
        answer(MrpType::kConfirm, static_cast<std::uint16_t>(MrpType::kActivate), out);
      }
      return Task::kNone;
    case MrpType::kUnregister: {
      if (!is_of_this_group(from, h)) return Task::kNone;
      answer(MrpType::kConfirm, static_cast<std::uint16_t>(MrpType::kUnregister), out);
      if (state_ == State::kGone || state_ == State::kFailed) return Task::kNone;
      if (state_ == State::kActive) {
        reject_ = static_cast<MrpReject>(h.flags);
        set_state(State::kGone, "the leader unregistered the group");
      } else {
        reject_ = static_cast<MrpReject>(h.flags);
        set_state(State::kFailed, "the leader unregistered the group before it was active");
      }
      return Task::kDissolved;
    }
    case MrpType::kReject:
      return is_named_by(message) ? on_reject(from, message) : Task::kNone;
    case MrpType::kConfirm: {
      const bool answers_query = h.flags == static_cast<std::uint16_t>(MrpType::kQuery);
      const bool is_for_us = answers_query && is_of_this_group(from, h);
      return is_for_us && state_ == State::kActive ? Task::kWait : Task::kNone;
    }
    case MrpType::kRefresh:
    case MrpType::kQuery:
    case MrpType::kReport:
    case MrpType::kEvict:
      break;
  }
  return Task::kNone;
}

void Membership::complain(Actions& out) const {
  if (state_ == State::kActive) answer(MrpType::kQuery, 0, out);
}

Membership::Task Membership::on_register(Ipv4 from, const MrpMessage& message, Actions& out) {
  const wire::MrpHeader& h = message.header;
  if (state_ == State::kWaiting) {
    id_ = h.mcst_id;
    epoch_ = h.epoch;
    instance_ = h.instance;
    leader_ = from;
    host_sync_ = (h.flags & wire::MrpHeader::kHostSync) != 0;
    set_state(State::kConnecting, "a leader named this member");
    return Task::kConnect;
  }
  if (!is_of_this_group(from, h)) {
    const bool same_group = from == leader_ && h.instance == instance_ && h.mcst_id == id_;
    if (same_group && !wire::newer_epoch(h.epoch, epoch_)) return Task::kNone;  // a late duplicate
    const bool over = state_ == State::kGone || state_ == State::kFailed;
    refuse(from, h, over ? MrpReject::kNotMember : MrpReject::kIdInUse, out);
  } else if (state_ == State::kConfirmed || state_ == State::kActive) {
    answer(MrpType::kConfirm, confirmed_flags(), out);
  }
  return Task::kNone;
}

// The leader gave the registration up; sent to this member alone. One that has not heard of the
// group knows its leader by the token, one that has answered also by what it answered.
Membership::Task Membership::on_reject(Ipv4 from, const MrpMessage& message) {
  const bool over = state_ == State::kGone || state_ == State::kFailed;
  if (over || (state_ != State::kWaiting && !is_of_this_group(from, message.header))) {
    return Task::kNone;
  }
  leader_ = from;
  id_ = message.header.mcst_id;
  epoch_ = message.header.epoch;
  instance_ = message.header.instance;
  reject_ = static_cast<MrpReject>(message.header.flags);
  set_state(State::kFailed, "the leader gave the registration up");
  return Task::kDissolved;
}

bool Membership::lead(McstId id, std::uint16_t epoch, std::uint32_t instance) {
  if (state_ != State::kWaiting) return false;
  id_ = id;
  epoch_ = epoch;
  instance_ = instance;
  leader_ = self_.host;
  set_state(State::kConfirmed, "leads the group itself");
  return true;
}

void Membership::connected(Instant, bool ok, Actions& out) {
  if (state_ != State::kConnecting) return;
  if (ok) {
    set_state(State::kConfirmed, "its queue pair is connected");
    answer(MrpType::kConfirm, confirmed_flags(), out);
  } else {
    reject_ = MrpReject::kMemberFailed;
    set_state(State::kFailed, "its queue pair could not be connected");
    answer(MrpType::kReject, static_cast<std::uint16_t>(MrpReject::kMemberFailed), out);
  }
}

}  // namespace cepheus::mrp
