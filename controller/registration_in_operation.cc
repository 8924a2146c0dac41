// The registration of a group in operation: complaints, late members, evictions, its end. QUERYs
// are request_again apart. They go on while a member is suspected, or is late and others wait for
// it. A lost source that owes packets fails the group; any other lost member is evicted, unless a
// loss ends the group.
//
// A changed window is spread with REFRESH. A path MTU that falls before the group is active fails
// it. UNREGISTER is repeated until all have confirmed or its repeats are used up; after a failure
// each member gets GIVE_UP, too.
#include <algorithm>
#include <cassert>

#include "controller/registration.h"
#include "controller/reject_text.h"
#include "wire/situation.h"

namespace cepheus::mrp {

using wire::ErrorCode;
using wire::kNever;
using wire::MrpReject;
using wire::MrpType;

void Registration::send_request(Instant now, Outbox& out) {
  if (state_ != State::kActive) return;
  requested_at_ = now;
  if (next_request_ != kNever && next_request_ > now) return;  // The last QUERY is recent.
  query(now, out);
}

// Until all have confirmed REGISTER, each CONFIRM is about some of the ways. Later ones, and
// REPORTs, are about all: the leader's own switch has merged them. A connected queue pair keeps its
// path MTU.
void Registration::take_path(Instant now, const wire::MrpPath& path, Outbox& out) {
  knows_window_ |= path.window != 0;
  if (state_ == State::kActive && path.window != path_.window)
    CEPHEUS_SITUATION("a group's path changes in operation");
  if (state_ == State::kRegistering) return path_.narrow(path);
  if (!is_setting_up() && state_ != State::kActive) return;
  if (is_setting_up() && path.mtu != 0 && path.mtu < path_.mtu) {
    CEPHEUS_RARE_SITUATION("the path MTU falls while members connect");
    const std::string text = "a port's MTU has fallen while members connected: packets of " +
                             std::to_string(path_.mtu) + " bytes do not fit, those of " +
                             std::to_string(path.mtu) + " do: create fresh groups";
    return fail(now, {reject_code(MrpReject::kTooLong), text}, MrpReject::kTooLong, out);
  }
  path_.window = path.window;
  if (state_ == State::kActive && path_ != spread_) spread_path(now, out);
}

// No member confirms a REFRESH, so the next ones follow soon.
void Registration::spread_path(Instant now, Outbox& out) {
  spread_ = path_;
  send_to_group(MrpType::kRefresh, out);
  const Pace& refresh = config_.repeats.refresh;
  repeat_ = Backoff({std::min(times::kLongestRetry, refresh.first), refresh.longest}, now);
  repeat_.sent(now);
}

void Registration::query(Instant now, Outbox& out) {
  send_to_group(MrpType::kQuery, out);
  queried_at_ = now;
  next_request_ = now + config_.request_again;
}

void Registration::look(Outbox& out) const {
  if (state_ != State::kActive) return;
  send_to_group(MrpType::kQuery, out);
  out.messages.back().header.flags = wire::MrpHeader::kPresence;
}

// The member waits for data, and sends its name and its control port.
void Registration::on_presence_query(Instant now, const MrpMember& asker, Outbox& out) {
  const std::size_t at = members_.find(asker.host);
  const bool is_member = at < members_.size() && members_[at].is_same_as(asker);
  const bool stands = state_ == State::kActive || state_ == State::kActivating;
  const bool holds = stands && is_member;
  out.messages.push_back(message(holds ? MrpType::kAlive : MrpType::kGiveUp));
  MrpMessage& answer = out.messages.back();
  answer.add(asker);
  if (!holds) {
    const MrpReject why = stands ? MrpReject::kEvicted : reject_;
    answer.header.flags = static_cast<std::uint16_t>(why);
    return;
  }
  answer.header.flags = wire::MrpHeader::kPresence;
  // It may wait for a source that has died: no other member would complain.
  const bool requested_lately =
      next_request_ != kNever || now - queried_at_ < config_.asker_time_limit;
  if (requested_lately)
    CEPHEUS_SITUATION("a member waits for data while lagging members are sought");
  if (state_ == State::kActive && !requested_lately) query(now, out);
}

void Registration::on_complaint(Instant now, Ipv4 from, const MrpMessage& message, Outbox& out) {
  if (message.header.flags == wire::MrpHeader::kPresence) {
    if (message.member_count == 1 && message.members[0].host == from) {
      on_presence_query(now, message.members[0], out);
    }
    return;
  }
  if (!members_.has(from)) return;
  const auto at = std::ranges::find(askers_, from, &Asker::host);
  if (at == askers_.end()) {
    askers_.push_back({from, now});
  } else {
    at->requested = now;
  }
  send_request(now, out);
}

// The member never receives the rest. So the others must not take the group's messages as complete.
void Registration::on_member_failed(Instant now, Ipv4 from, const MrpMessage& message,
                                    Outbox& out) {
  if (message.header.flags != static_cast<std::uint16_t>(MrpReject::kMemberFailed)) return;
  if (message.member_count != 1 || message.members[0].host != from || from == config_.host) return;
  CEPHEUS_RARE_SITUATION("a member of an active group reports its own failure");
  const std::size_t member = members_.find(from);
  if (member == members_.size() || members_[member].qpn != message.members[0].qpn) return;
  fail(now,
       {ErrorCode::kUnavailable,
        to_string(members_[member]) +
            " left the group, its reason is on that host: create fresh groups"},
       MrpReject::kMemberFailed, out);
}

void Registration::on_report(Instant now, const MrpMessage& message, Outbox& out) {
  if (state_ != State::kActive || message.member_count == 0) return;
  bool alive = false;
  for (const MrpMember& reported : message.list()) {
    if (!members_.has(reported.host)) continue;
    if (reported.flags == wire::kMemberLate) {
      alive |= late_.name(now, reported.host, LaggingMembers::Role::kReceiver, reported.qpn.value())
                   .is_active;
    } else if (state_ == State::kActive) {
      judge(now, reported, out);
    }
  }
  if (state_ != State::kActive) return;
  if (alive && !suspects_.any_silent(now, config_.asker_time_limit)) {
    reassure(now, out);
  }
  // A member lags: repeat the QUERY.
  if (next_request_ == kNever) next_request_ = now + config_.request_again;
}

// The lagging members answer, and continue when their programs do; or one was evicted. So no member
// has to give up.
void Registration::reassure(Instant now, Outbox& out) {
  alive_at_ = now;
  std::erase_if(askers_,
                [&](const Asker& a) { return now - a.requested > config_.asker_time_limit; });
  std::vector<MrpMember> list;
  for (const Asker& asker : askers_) {
    const std::size_t i = members_.find(asker.host);
    if (i < members_.size()) list.push_back(members_[i]);
  }
  send_list(MrpType::kAlive, list, out);
}

void Registration::judge(Instant now, const MrpMember& reported, Outbox& out) {
  const std::size_t member = members_.find(reported.host);
  if (reported.host == config_.host) return;
  const bool is_source = (reported.flags & wire::kMemberSource) != 0;
  const auto role = is_source ? LaggingMembers::Role::kSource : LaggingMembers::Role::kReceiver;
  const Duration silence = suspects_.name(now, reported.host, role, reported.qpn.value()).silence;
  const bool down = (reported.flags & wire::kMemberDown) != 0;
  const bool owes = (reported.flags & wire::kMemberOwes) != 0;
  if (owes && is_source) {
    // The last answers to its packets may be under way, or it retransmits.
    CEPHEUS_SITUATION("a source is lost, and owes packets");
    const Duration limit = down ? config_.source_grace : config_.evict_after;
    if (silence < limit) return;
    fail(now,
         {ErrorCode::kUnavailable,
          to_string(members_[member]) +
              " was lost before every member had all of its last message: create fresh groups"},
         MrpReject::kEvicted, out);
  } else if (down || silence >= config_.evict_after) {
    lose(now, member, down, out);
  }
}

void Registration::lose(Instant now, std::size_t member, bool port_is_down, Outbox& out) {
  if (config_.lost_member == LostMember::kEvicted) return evict(now, member, out);
  fail(now,
       {ErrorCode::kUnavailable, to_string(members_[member]) + " " +
                                     loss_text(port_is_down, config_.evict_after) +
                                     "; set up again with fresh groups"},
       MrpReject::kEvicted, out);
}

std::string loss_text(bool port_is_down, Duration evict_after) {
  if (port_is_down) return "was lost: its port is down";
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(evict_after).count();
  return "was lost: it has not answered for " + std::to_string(seconds) + " s";
}

void Registration::evict(Instant now, std::size_t member, Outbox& out) {
  if (evicted_ != 0) CEPHEUS_SITUATION("a group loses a second member");
  if (members_.size() == 2) CEPHEUS_RARE_SITUATION("a leader is alone after an eviction");
  const MrpMember gone = members_[member];
  members_.erase(member);
  suspects_.forget(gone.host);
  late_.forget(gone.host);
  ++evicted_;
  evictions_.add(now, gone, config_.repeats.evict);
  send_list(MrpType::kEvict, evictions_.take_due(now), out);
  reassure(now, out);  // Another silent member may delay their sends only from now on.
}

void Registration::send_unregister(Instant now, Outbox& out) {
  if (repeat_.is_used_up()) {
    if (state_ == State::kUnregistering)
      CEPHEUS_SITUATION("UNREGISTER is repeated until it is given up");
    repeat_.stop();
    if (state_ == State::kUnregistering) set_state(State::kGone, "unregistering was repeated");
    return;
  }
  if (!repeat_.is_first() && state_ == State::kUnregistering && error_.text.empty()) {
    CEPHEUS_SITUATION("UNREGISTER is repeated for those that have not confirmed");
    request_again(MrpType::kUnregister, out);
  } else {
    send_to_group(MrpType::kUnregister, out);
    out.messages.back().header.flags = static_cast<std::uint16_t>(reject_);
  }
  if (!error_.text.empty()) {  // the registration failed: some members may not know of the group
    std::vector<MrpMember> others = members_.all();
    std::erase_if(others, [this](const MrpMember& m) { return m.host == config_.host; });
    const std::size_t first = out.messages.size();
    send_list(MrpType::kGiveUp, others, out);
    for (std::size_t i = first; i < out.messages.size(); ++i) {
      out.messages[i].header.flags = static_cast<std::uint16_t>(reject_);
    }
  }
  repeat_.sent(now);
}

void Registration::unregister(Instant now, Outbox& out) {
  switch (state_) {
    case State::kUnregistering:
    case State::kGone:
      return;
    case State::kIdle:
      set_state(State::kGone, "was never registered");
      return;
    case State::kFailed:
      // UNREGISTER is under way already: its repeats continue.
      CEPHEUS_SITUATION("a leader unregisters after its registration failed");
      if (repeat_.is_used_up()) {
        set_state(State::kGone, "failed and unregistered");
        repeat_.stop();
      } else {
        set_state(State::kUnregistering, "failed, then asked to unregister");
        members_.expect_confirmations(config_.host);
      }
      break;
    case State::kRegistering:
    case State::kConnecting:
    case State::kActivating:
    case State::kActive:
      give_up_ = next_request_ = kNever;
      evictions_.stop();
      repeat_ = Backoff(config_.repeats.unregister, now);
      set_state(State::kUnregistering, "asked to unregister");
      members_.expect_confirmations(config_.host);
      send_unregister(now, out);
  }
  check_consistent();
}

}  // namespace cepheus::mrp
