// While the queue pair is being connected, shares of the newest attempt are added up, and
// connected() answers them all at once. An INSTALL without a share and without the flag "fresh"
// makes the group active. After the end each INSTALL is refused.
//
// Ignored: an older epoch, and a REMOVE of the fabric (share 0) while the sender's INSTALLs are
// younger than sender_lives_. A receiver without a group accepts a REMOVE that names it.
#include "controller/receiver_membership.h"

#include <algorithm>
#include <cassert>

#include "wire/situation.h"

namespace cepheus::mrp {

using wire::MrpReject;
using wire::MrpType;
using wire::SenderGroupMessage;

namespace {

// From `self` alone. `flags`: the type that INSTALLED answers, or a REJECT's reason.
template <typename Flags>
SenderGroupMessage answer_to(const SenderGroupMessage& requested, MrpType type, Flags flags,
                             const MrpMember& self) {
  SenderGroupMessage m = requested;
  m.header.type = type;
  m.header.flags = static_cast<std::uint16_t>(flags);
  m.receiver_count = m.region_count = 0;
  m.add({self.host, self.qpn});
  return m;
}

}  // namespace

std::optional<SenderGroupMessage> answer_of_nobody(const SenderGroupMessage& requested,
                                                   const MrpMember& named) {
  if (requested.header.type == MrpType::kInstall) {
    return answer_to(requested, MrpType::kReject, MrpReject::kNotMember, named);
  }
  if (requested.header.type != MrpType::kRemove || requested.share == 0) return std::nullopt;
  return answer_to(requested, MrpType::kInstalled, MrpType::kRemove, named);
}

void ReceiverMembership::set_state(State state, const char* reason) {
  assert(state_ != State::kGone && state_ != State::kFailed);
  state_ = state;
  state_reason_ = reason;
}

bool ReceiverMembership::is_named_by(const SenderGroupMessage& message) const {
  return std::ranges::any_of(message.list(), [this](const MrpMember& m) {
    return m.is_same_as(self_) && m.token == self_.token;
  });
}

// Its queue pair sends to the virtual QPN that it was connected to.
bool ReceiverMembership::is_of_this_group(const SenderGroupMessage& message) const {
  return state_ != State::kWaiting && message.sender() == sender() &&
         message.header.instance == group_.header.instance &&
         message.virtual_qpn == group_.virtual_qpn && message.sender_qpn == group_.sender_qpn &&
         message.start == group_.start;
}

void ReceiverMembership::refuse(const SenderGroupMessage& requested, MrpReject reason,
                                Outbox& out) const {
  out.of_sender_groups.push_back(answer_to(requested, MrpType::kReject, reason, self_));
}

// INSTALLs may overtake each other.
void ReceiverMembership::note(const SenderGroupMessage& install) {
  if (!wire::newer_epoch(group_.header.seq, install.header.seq)) group_ = install;
}

ReceiverMembership::Task ReceiverMembership::on_message(Instant now,
                                                        const SenderGroupMessage& message,
                                                        Outbox& out) {
  switch (message.header.type) {
    case MrpType::kInstall:
      return on_install(now, message, out);
    case MrpType::kRemove:
      return on_remove(now, message, out);
    default:
      return Task::kNone;
  }
}

ReceiverMembership::Task ReceiverMembership::on_install(Instant now,
                                                        const SenderGroupMessage& message,
                                                        Outbox& out) {
  const bool measures = (message.header.flags & SenderGroupMessage::kMeasures) != 0;
  if (state_ == State::kWaiting) {
    if (!is_named_by(message)) return Task::kNone;
    group_ = message;
    ++installs_received_;
    last_message_at_ = now;
    if (measures) {
      set_state(State::kNamed, "a sender named this receiver");
      answer_measuring(message, out);
      return Task::kNamed;
    }
    set_state(State::kConnecting, "a sender named this receiver");
    return Task::kConnect;
  }
  if (!is_of_this_group(message)) {
    if (is_named_by(message)) refuse(message, MrpReject::kIdInUse, out);
    return Task::kNone;
  }
  if (wire::newer_epoch(epoch(), message.header.epoch)) {  // a late duplicate
    CEPHEUS_RARE_SITUATION("an INSTALL of an older epoch arrives");
    return Task::kNone;
  }
  ++installs_received_;
  last_message_at_ = now;
  if (state_ == State::kFailed || state_ == State::kGone) {
    CEPHEUS_RARE_SITUATION("an INSTALL finds a receiver that has ended");
    refuse(message, reject_ == MrpReject::kMemberFailed ? reject_ : MrpReject::kNotMember, out);
    return Task::kNone;
  }
  if (state_ == State::kNamed && !measures) {
    group_ = message;
    set_state(State::kConnecting, "the path MTU is known");
    return Task::kConnect;
  }
  if (state_ == State::kNamed) {
    note(message);
    answer_measuring(message, out);
    return Task::kNone;
  }
  if (measures) return Task::kNone;  // late
  if (state_ == State::kConnecting) {
    // connected() answers for all paths of the newest attempt.
    const bool is_same = message.header.seq == group_.header.seq;
    const std::uint64_t before = is_same ? group_.share : 0;
    note(message);
    if (is_same) group_.share = std::min(SenderGroupMessage::kWholeShare, before + message.share);
    return Task::kNone;
  }
  note(message);
  if (message.share > 0) {
    out.of_sender_groups.push_back(
        answer_to(message, MrpType::kInstalled, MrpType::kInstall, self_));
    return Task::kNone;
  }
  // The sender sends it once all have answered, and a switch after a change of its routes. That one
  // has the flag if others may not have answered.
  const bool is_fresh = (message.header.flags & SenderGroupMessage::kFresh) != 0;
  if (state_ == State::kActive || is_fresh) return Task::kNone;
  set_state(State::kActive, "all receivers are connected");
  return Task::kActivated;
}

void ReceiverMembership::answer_measuring(SenderGroupMessage message, Outbox& out) const {
  wire::MrpPath path{message.path_mtu, 0};
  path.narrow({path_mtu_, 0});
  message.path_mtu = path.mtu;
  out.of_sender_groups.push_back(answer_to(message, MrpType::kInstalled, MrpType::kInstall, self_));
}

ReceiverMembership::Task ReceiverMembership::on_remove(Instant now,
                                                       const SenderGroupMessage& message,
                                                       Outbox& out) {
  const bool waits = state_ == State::kWaiting;
  if (waits ? !is_named_by(message) : !is_of_this_group(message)) return Task::kNone;
  // From a switch that receives no newer epochs, and forgets its rules.
  if (!waits && wire::newer_epoch(epoch(), message.header.epoch)) return Task::kNone;
  // A switch that forgets the group speaks for all behind it, though another way may lead there since.
  const bool is_of_fabric = message.share == 0;
  if (!waits && is_of_fabric && now - last_message_at_ <= sender_lives_) return Task::kNone;
  if (!is_of_fabric) {
    out.of_sender_groups.push_back(
        answer_to(message, MrpType::kInstalled, MrpType::kRemove, self_));
  }
  if (state_ == State::kGone || state_ == State::kFailed) return Task::kNone;
  if (waits) group_ = message;
  reject_ = static_cast<MrpReject>(message.header.flags);
  if (state_ == State::kActive) {
    set_state(State::kGone, "the sender removed the group, or this receiver");
  } else {
    set_state(State::kFailed, "the sender removed the group before it was active");
  }
  return Task::kEnded;
}

void ReceiverMembership::connected(bool ok, Outbox& out) {
  if (state_ != State::kConnecting) return;
  if (!ok) {
    reject_ = MrpReject::kMemberFailed;
    set_state(State::kFailed, "its queue pair could not be connected");
    return refuse(group_, reject_, out);
  }
  set_state(State::kConnected, "its queue pair is connected");
  if (group_.share == 0) return;  // The sender's next attempt requests it.
  out.of_sender_groups.push_back(answer_to(group_, MrpType::kInstalled, MrpType::kInstall, self_));
}

void ReceiverMembership::leave(Outbox& out) {
  if (!takes_part()) return;
  reject_ = MrpReject::kMemberFailed;
  set_state(State::kFailed, "its owner's side failed");
  refuse(group_, reject_, out);
}

}  // namespace cepheus::mrp
