// A group's part in registration, as leader or as one of many.
#include <algorithm>
#include <cassert>

#include "controller/reject_text.h"
#include "libmcast/context.h"
#include "libmcast/ending.h"
#include "libmcast/group.h"

namespace cepheus::mcast {

using MemberTask = mrp::Membership::Task;

// That this member may lead those.
Expected<void> Group::check_lists(std::span<const mrp::MrpMember> members) const {
  if (eager_ && recv_cb_ == nullptr) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "set the receive callback before the group is registered");
  }
  const bool listed = std::find(members.begin(), members.end(), member()) != members.end();
  if (!listed) {
    return mcast::fail(MCAST_ERR_INVALID,
                       mrp::to_string(member()) +
                           ", the leader itself, is not among the members: add what "
                           "mcast_group_member() says");
  }
  if (state_ != MCAST_GROUP_WAITING) {
    return mcast::fail(MCAST_ERR_INVALID, "the group has a leader already: use a fresh group");
  }
  return {};
}

Expected<void> Group::lead(wire::Instant now, const mrp::RegistrationConfig& config,
                           const mrp::McstAllocator::Lease& lease,
                           std::span<const mrp::MrpMember> members, mrp::Outbox& out) {
  if (auto checked = check_lists(members); !checked) return checked;
  auto registration = std::make_unique<mrp::Registration>(config, lease.id, lease.epoch);
  if (!regions_.is_in_force()) registration->hold();  // others might write before
  if (const auto started = registration->start(now, members, out); !started) {
    return tl::unexpected(failure_of(started.error()));
  }
  const bool free_to_lead = membership_.lead(lease.id, lease.epoch, config.instance);
  assert(free_to_lead);
  static_cast<void>(free_to_lead);
  // Before anybody can answer: the first member to be active may send at once.
  if (auto connected = pair_->connect(group_end(lease.id, lease.epoch), timers_); !connected) {
    out.clear();
    fail(connected.error().status, MCAST_CAUSE_REGISTRATION, connected.error().text);
    return tl::unexpected(connected.error());
  }
  registration_ = std::move(registration);
  regions_.begin(now, out.messages.back().header, member());
  state_ = MCAST_GROUP_REGISTERING;
  return {};
}

void Group::on_message(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
                       mrp::Outbox& out) {
  const wire::MrpHeader& header = message.header;
  if (header.type == wire::MrpType::kConfirm && regions_.on_confirm(now, header)) {
    on_regions_confirmed(now, out);
  }
  if (registration_) {
    registration_->on_message(now, from, message, out);
    follow_registration();
  }
  const bool is_register = message.header.type == wire::MrpType::kRegister;
  // Nobody to hand data to yet: the leader repeats what is not answered now.
  if (is_register && eager_ && recv_cb_ == nullptr) return;
  // A leader's own membership only refuses other leaders.
  if (!registration_ || is_register) {
    run_task(now, membership_.on_message(now, from, message, out), header, out);
  }
}

// This member takes part once its regions can be written to.
void Group::on_regions_confirmed(wire::Instant now, mrp::Outbox& out) {
  context_.discard(regions_.take_revoked());
  if (registration_) {
    registration_->release(now, out);
    follow_registration();
  } else if (state_ == MCAST_GROUP_REGISTERING) {
    membership_.connected(now, true, out);
  }
}

void Group::run_task(wire::Instant now, MemberTask task, const wire::MrpHeader& header,
                     mrp::Outbox& out) {
  switch (task) {
    case MemberTask::kNone:
      return;
    case MemberTask::kConnect: {
      const auto connected =
          state_ == MCAST_GROUP_WAITING
              ? pair_->connect(group_end(membership_.id(), membership_.epoch()), timers_)
              : mcast::fail(MCAST_ERR_FABRIC, reason_);
      if (connected) {
        state_ = MCAST_GROUP_REGISTERING;
        regions_.begin(now, header, member());
      }
      // The switch is told of its regions first: whoever is told that the group is active may write.
      if (!connected || regions_.is_in_force()) {
        membership_.connected(now, connected.has_value(), out);
      }
      if (!connected) {
        fail(connected.error().status, MCAST_CAUSE_REGISTRATION, connected.error().text);
      }
      return;
    }
    case MemberTask::kActivated:
      if (state_ == MCAST_GROUP_REGISTERING) activate_with(membership_.host_sync());
      return;
    case MemberTask::kWait:
      watchdog_.calm();
      return presence_.heard();
    case MemberTask::kStands:
      return presence_.heard();
    case MemberTask::kDissolved: {
      const bool was_active = membership_.state() == mrp::Membership::State::kGone;
      const Ending ending =
          ending_of(was_active, membership_.reject_reason(), membership_.leader());
      fail(ending.status, ending.cause, ending.reason);
    }
  }
}

void Group::follow_registration() {
  using State = mrp::Registration::State;
  if (alive_at_ != registration_->alive_at()) {
    alive_at_ = registration_->alive_at();
    watchdog_.calm();
  }
  if (heard_at_ != registration_->heard_at()) {
    heard_at_ = registration_->heard_at();
    presence_.heard();
  }
  if (state_ == MCAST_GROUP_ACTIVE && registration_->state() == State::kFailed) {
    return fail(MCAST_ERR_FABRIC, MCAST_CAUSE_LEADER, registration_->error().text);
  }
  if (state_ != MCAST_GROUP_REGISTERING) return;
  if (registration_->state() == State::kActive) {
    activate_with(registration_->host_sync());
  } else if (registration_->state() == State::kFailed) {
    const bool taken = registration_->reject_reason() == wire::MrpReject::kIdInUse;
    fail(taken ? MCAST_ERR_ID_IN_USE : status_of(registration_->error().code),
         MCAST_CAUSE_REGISTRATION, registration_->error().text);
  }
}

void Group::activate_with(bool host_sync) {
  activate();
  if (host_sync) sync_.enable();
}

void Group::on_timer(wire::Instant now, mrp::Outbox& out) {
  if (role_) return role_->on_timer(now, out);
  if (!registration_) {
    if (membership_.deadline() <= now) membership_.on_timer(now, out);
    return;
  }
  if (registration_->deadline() > now) return;
  registration_->on_timer(now, out);
  follow_registration();
}

void Group::look_for_laggards(wire::Instant now, mrp::Outbox& out) {
  if (state_ != MCAST_GROUP_ACTIVE || !watched_ || lane().sends_outstanding() == 0) return;
  const std::pair sends(lane().traffic().messages_sent, lane().sends_outstanding());
  if (sends != watched_sends_) {
    watched_sends_ = sends;
    unmoved_since_ = now;
  } else if (now - unmoved_since_ >= wire::times::kSenderAsks) {
    unmoved_since_ = now;
    if (role_) {
      role_->ask(now, out);
    } else if (registration_) {
      registration_->ask(now, out);
    } else {
      membership_.complain(out);
    }
  }
}

void Group::look_for_leader(wire::Instant now, mrp::Outbox& out) {
  if (role_ && state_ != MCAST_GROUP_FAILED) return role_->look(now);
  if (state_ != MCAST_GROUP_ACTIVE) return;
  const bool waits = lane().receives_posted() > 0;
  switch (presence_.look(now, lane().traffic().messages_received, waits)) {
    case Presence::Step::kNone:
      return;
    case Presence::Step::kAsk:
      return registration_ ? registration_->look(out) : membership_.ask(out);
    case Presence::Step::kGiveUp:
      break;
  }
  fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WATCHDOG,
       (registration_ ? std::string("the switch")
                      : "the leader " + membership_.leader().to_string()) +
           " has not answered for " + milliseconds_text(presence_.limit()) +
           ": it is gone, or the way there is; set up again with fresh groups");
}

void Group::tell_failure(wire::Instant now, mrp::Outbox& out) {
  if (state_ != MCAST_GROUP_FAILED || told_failure_) return;
  told_failure_ = true;
  if (role_) {
    role_->tell_failure(now, reason_, out);
  } else if (registration_) {
    registration_->give_up(now, reason_, out);
  } else {
    membership_.leave(now, out);
  }
}

wire::Instant Group::deadline() const {
  if (role_) return role_->deadline();
  const wire::Instant of_group = registration_ ? registration_->deadline() : membership_.deadline();
  return std::min(of_group, regions_.deadline());
}

bool Group::is_on_duty() const {
  if (!is_leader()) return false;
  const bool is_telling = !told_failure_ || deadline() != wire::kNever;
  return state_ == MCAST_GROUP_ACTIVE || (state_ == MCAST_GROUP_FAILED && is_telling);
}

bool Group::is_settled() const {
  return state_ == MCAST_GROUP_FAILED ||
         (state_ == MCAST_GROUP_ACTIVE && regions_status() == MCAST_OK);
}

}  // namespace cepheus::mcast
