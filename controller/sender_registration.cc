// Answers of an older epoch are ignored, but not its REPORTs.
//
// In operation "no route" counts as silence, and "not member" as a loss. An eviction numbers
// receivers and regions anew and raises the epoch; the last receiver's loss fails the group. QUERYs
// continue while a receiver is suspected. Source: MC-RDMA III-A, IV-A.
#include "controller/sender_registration.h"

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

// Of all named members: only the sender sends.
constexpr auto kRole = LaggingMembers::Role::kReceiver;

Ipv4 destination(const SenderGroupMessage& message) {
  switch (message.header.type) {
    case MrpType::kInstall:
    case MrpType::kRemove:
    case MrpType::kQuery:
      return message.addressed;
    default:
      return message.sender();
  }
}

SenderRegistration::SenderRegistration(const SenderConfig& config)
    : config_(config), suspects_(10 * config.request_again), late_(10 * config.request_again) {
  assert(wire::is_sender_group(config.virtual_qpn));
  group_.header.mcst_id = config.host;
  group_.header.instance = config.instance;
  group_.control_port = config.control_port;
  group_.virtual_qpn = config.virtual_qpn;
  group_.sender_qpn = config.qpn;
  group_.start = config.start;
  group_.path_mtu = config.path_mtu;
}

void SenderRegistration::set_state(State state, const char* reason) {
  assert(state_ != State::kGone);
  state_ = state;
  state_reason_ = reason;
}

bool SenderRegistration::is_of_this_group(const SenderGroupMessage& m) const {
  return m.sender() == config_.host && m.header.instance == config_.instance &&
         m.virtual_qpn == group_.virtual_qpn && m.sender_qpn == group_.sender_qpn;
}

wire::Result<void> SenderRegistration::start(Instant now, std::span<const MrpMember> receivers,
                                             std::span<const SenderGroupMessage::Region> regions,
                                             Outbox& out) {
  if (state_ != State::kIdle) {
    return wire::invalid("registration was started before: use a fresh one");
  }
  if (receivers.empty()) {
    return wire::invalid("a sender group needs at least one receiver");
  }
  if (receivers.size() > SenderGroupMessage::kMaxReceivers) {
    return wire::invalid(
        std::to_string(receivers.size()) + " receivers: a sender group has at most " +
        std::to_string(SenderGroupMessage::kMaxReceivers) + ", use a group without sender_group");
  }
  SenderGroupMessage group = group_;
  group.header.epoch = 1;
  group.addressed = receivers.front().host;
  for (const MrpMember& receiver : receivers) {
    if (receiver.host == config_.host || !group.add(receiver)) {
      return wire::invalid("host " + receiver.host.to_string() +
                           " is listed twice, or is the sender's: name one member for each host");
    }
  }
  for (const SenderGroupMessage::Region& each : regions) {
    assert(each.receiver < receivers.size());
    if (!group.add_region(each.receiver, each.region)) {
      return wire::invalid(std::to_string(regions.size()) +
                           " regions: the receivers of a sender group have at most " +
                           std::to_string(SenderGroupMessage::kMaxRegions) +
                           " together, make them fewer and larger");
    }
  }
  group_ = group;
  give_up_ = now + config_.timeout;
  const State first = config_.path_mtu != 0 ? State::kMeasuring : State::kInstalling;
  begin_step(now, first, "started", out);
  check_consistent();
  return {};
}

void SenderRegistration::begin_step(Instant now, State state, const char* reason, Outbox& out) {
  set_state(state, reason);
  answers_ = {};
  repeat_ = Backoff(pace(), now);
  send_attempt(now, out);
}

Pace SenderRegistration::pace() const {
  if (is_active()) return config_.repeats.install;
  return is_setting_up() ? config_.repeats.set_up : config_.repeats.unregister;
}

// Without regions, which INSTALL alone brings.
SenderGroupMessage SenderRegistration::message(MrpType type, std::uint16_t flags) const {
  SenderGroupMessage m = group_;
  m.header.type = type;
  m.header.flags = flags;
  m.region_count = 0;
  return m;
}

// The state's next INSTALL or REMOVE.
void SenderRegistration::send_attempt(Instant now, Outbox& out) {
  const bool installs = is_setting_up() || is_active();
  const auto why = static_cast<std::uint16_t>(reject_);
  std::uint16_t fresh = is_setting_up() ? SenderGroupMessage::kFresh : 0;
  if (state_ == State::kMeasuring) fresh |= SenderGroupMessage::kMeasures;
  SenderGroupMessage m =
      message(installs ? MrpType::kInstall : MrpType::kRemove, installs ? fresh : why);
  if (installs) m.region_count = group_.region_count;
  m.header.seq = ++seq_;
  if (state_ != State::kActive) {
    m.share = SenderGroupMessage::kWholeShare;
    answers_.add_attempt(seq_);
  }
  out.of_sender_groups.push_back(m);
  repeat_.sent(now);
}

void SenderRegistration::on_message(Instant now, Ipv4 from, const SenderGroupMessage& message,
                                    Outbox& out) {
  if (!is_of_this_group(message)) return;
  // A switch of an older epoch still knows lagging members and ports that are down.
  const bool is_report = message.header.type == MrpType::kReport;
  if (message.header.epoch != group_.header.epoch && !is_report) {
    CEPHEUS_RARE_SITUATION("an answer to an older epoch of a sender group");
    return;
  }
  switch (message.header.type) {
    case MrpType::kInstalled:
      on_installed(now, from, message, out);
      break;
    case MrpType::kReject:
      on_reject(now, from, message, out);
      break;
    case MrpType::kReport:
      on_report(now, message, out);
      break;
    default:
      break;
  }
  check_consistent();
}

bool SenderRegistration::is_awaited(MrpType type) const {
  switch (state_) {
    case State::kMeasuring:
    case State::kInstalling:
    case State::kEvicting:
      return type == MrpType::kInstall;
    case State::kFailed:
    case State::kRemoving:
      return type == MrpType::kRemove;
    default:
      return false;
  }
}

void SenderRegistration::on_installed(Instant now, Ipv4 from, const SenderGroupMessage& answer,
                                      Outbox& out) {
  const std::size_t receiver = find(from);
  const bool is_its_own = receiver < group_.receiver_count && answer.receiver_count == 1 &&
                          answer.receivers[0].is_same_as(group_.receivers[receiver]);
  if (!is_its_own || !is_awaited(static_cast<MrpType>(answer.header.flags))) return;
  const std::uint16_t attempt = answer.header.seq;
  if (!answers_.take(receiver, attempt, answer.share)) return;
  if (is_setting_up()) path_.narrow({answer.path_mtu, answer.window});
  if (answers_.is_complete(attempt, group_.receiver_count)) go_on(now, out);
}

// All receivers have answered the step of this state.
void SenderRegistration::go_on(Instant now, Outbox& out) {
  switch (state_) {
    case State::kMeasuring:
      path_.narrow({group_.path_mtu, 0});
      path_.round_mtu();
      group_.path_mtu = path_.mtu;
      return begin_step(now, State::kInstalling, "the path MTU is known", out);
    case State::kInstalling:
    case State::kEvicting:
      give_up_ = kNever;
      return begin_step(now, State::kActive, "all is installed", out);
    case State::kRemoving:
      set_state(State::kGone, "every receiver has answered REMOVE");
      break;
    default:
      break;
  }
  repeat_.stop();
}

void SenderRegistration::on_reject(Instant now, Ipv4 from, const SenderGroupMessage& message,
                                   Outbox& out) {
  if (!is_setting_up() && !is_active()) return;
  const auto reason = static_cast<MrpReject>(message.header.flags);
  const std::size_t receiver = find(from);
  const bool from_receiver = receiver < group_.receiver_count;
  // Receivers reject for themselves. Switches reject for receivers, or name none. All others are
  // forged.
  for (const MrpMember& named : message.list()) {
    const std::size_t at = find(named.host);
    if (at == group_.receiver_count || (from_receiver && at != receiver)) return;
  }
  if (from_receiver && message.receiver_count != 1) return;
  // A switch may have no route for a moment after a change. INSTALL continues. A
  // receiver that stays disconnected is as silent as a dead one.
  if (is_active() && reason == MrpReject::kNoRoute) {
    for (const MrpMember& named : message.list()) {
      if (is_active()) on_silence(now, named.host, 0, out);
    }
    return;
  }
  // Its queue pair is gone for good: as dead as its host would be.
  if (is_active() && from_receiver && reason == MrpReject::kNotMember) {
    return lose(now, receiver, "was lost: it has destroyed its queue pair", out);
  }
  const bool is_taken = reason == MrpReject::kIdInUse && !from_receiver;
  fail(now,
       {reject_code(reason), is_taken ? taken_text(from, group_.sender(), group_.virtual_qpn)
                                      : reject_text(reason, from, group_.sender(), message.list())},
       reason, out);
}

void SenderRegistration::send_request(Instant now, Outbox& out) {
  if (!is_active()) return;
  if (next_request_ != kNever && next_request_ > now) return;  // The last QUERY is recent.
  query(now, out);
}

void SenderRegistration::query(Instant now, Outbox& out) {
  out.of_sender_groups.push_back(message(MrpType::kQuery, 0));
  next_request_ = now + config_.request_again;
}

void SenderRegistration::on_report(Instant now, const SenderGroupMessage& report, Outbox& out) {
  if (!is_active() || report.receiver_count == 0) return;
  bool any_active = false;
  for (const MrpMember& reported : report.list()) {
    const std::size_t receiver = find(reported.host);
    if (receiver == group_.receiver_count) continue;
    // The member answers, or the sender has not retransmitted its missing packet.
    if ((reported.flags & (wire::kMemberDown | wire::kMemberOwes)) == 0) {
      suspects_.forget(reported.host);
      any_active |= late_.name(now, reported.host, kRole, reported.qpn.value()).is_active;
      continue;
    }
    if ((reported.flags & wire::kMemberDown) != 0) {
      lose(now, receiver, loss_text(true, config_.evict_after), out);
    } else {
      any_active |= on_silence(now, reported.host, reported.qpn.value(), out);
    }
    if (!is_active()) return;
  }
  if (any_active && !suspects_.any_silent(now, config_.asker_time_limit)) alive_at_ = now;
  // A member lags: repeat the QUERY.
  if (next_request_ == kNever) next_request_ = now + config_.request_again;
}

// A switch reports a lagging receiver and the count `received` of its packets. True: the count has
// changed since the last report.
bool SenderRegistration::on_silence(Instant now, Ipv4 host, std::uint32_t received, Outbox& out) {
  const auto verdict = suspects_.name(now, host, kRole, received);
  const std::size_t receiver = find(host);
  if (receiver < group_.receiver_count && verdict.silence >= config_.evict_after) {
    lose(now, receiver, loss_text(false, config_.evict_after), out);
  }
  return verdict.is_active;
}

void SenderRegistration::lose(Instant now, std::size_t receiver, const std::string& how,
                              Outbox& out) {
  const bool is_last = group_.receiver_count == 1;
  if (!is_last && config_.lost_receiver == LostMember::kEvicted) return evict(now, receiver, out);
  fail(now,
       {ErrorCode::kUnavailable, to_string(group_.receivers[receiver]) +
                                     (is_last ? ", the last receiver, " : " ") + how +
                                     "; set up again with fresh groups"},
       MrpReject::kEvicted, out);
}

void SenderRegistration::evict(Instant now, std::size_t receiver, Outbox& out) {
  suspects_.forget(group_.receivers[receiver].host);
  alive_at_ = now;  // The sends that it delayed end with the sender's next retransmission.
  ++group_.header.epoch;
  group_.remove(receiver);
  begin_step(now, State::kEvicting, "a receiver is gone", out);
}

void SenderRegistration::fail(Instant now, wire::Error error, MrpReject reject, Outbox& out) {
  error_ = std::move(error);
  reject_ = reject;
  give_up_ = next_request_ = kNever;
  begin_step(now, State::kFailed,
             error_.code == ErrorCode::kTimedOut ? "timed out" : "refused, or a receiver failed",
             out);
}

void SenderRegistration::give_up(Instant now, std::string why, Outbox& out) {
  if (!is_setting_up() && !is_active()) return;
  fail(now, {ErrorCode::kUnavailable, std::move(why)}, MrpReject::kMemberFailed, out);
  check_consistent();
}

void SenderRegistration::remove(Instant now, Outbox& out) {
  switch (state_) {
    case State::kRemoving:
    case State::kGone:
      return;
    case State::kIdle:
      set_state(State::kGone, "was never registered");
      return;
    case State::kFailed:
      // REMOVE is under way already: its repeats continue.
      if (repeat_.deadline() == kNever) {
        set_state(State::kGone, "failed and removed");
      } else {
        set_state(State::kRemoving, "failed, then asked to remove");
      }
      break;
    default:
      give_up_ = next_request_ = kNever;
      begin_step(now, State::kRemoving, "asked to remove", out);
  }
  check_consistent();
}

void SenderRegistration::on_time_out(Instant now, Outbox& out) {
  const std::vector<MrpMember> missing = answers_.missing(group_.list());
  const std::string text =
      missing.empty()
          ? "every receiver answered, but not over every path, or too late: see whether "
            "trunks lose packets (cepheusctl ports), or raise the registration time-out"
          : time_out_text(missing, group_.receiver_count + 1, config_.timeout);
  fail(now, {ErrorCode::kTimedOut, text}, MrpReject::kNone, out);
}

void SenderRegistration::on_timer(Instant now, Outbox& out) {
  if (now >= give_up_) {
    on_time_out(now, out);
    return check_consistent();
  }
  if (now >= next_request_) {
    next_request_ = kNever;
    if (suspects_.any(now)) query(now, out);  // only answers keep the questions going
  }
  if (repeat_.is_due(now)) {
    if (!repeat_.is_used_up()) {
      send_attempt(now, out);
    } else {
      repeat_.stop();
      if (state_ == State::kRemoving) set_state(State::kGone, "REMOVE was repeated");
    }
  }
  check_consistent();
}

Instant SenderRegistration::deadline() const {
  return std::min({give_up_, repeat_.deadline(), next_request_});
}

std::size_t SenderRegistration::find(Ipv4 host) const {
  const auto list = group_.list();
  return static_cast<std::size_t>(std::ranges::find(list, host, &MrpMember::host) - list.begin());
}

void SenderRegistration::check_consistent() const {
#ifndef NDEBUG
  assert(is_setting_up() == (give_up_ != kNever));
  assert((state_ != State::kIdle && state_ != State::kGone) || deadline() == kNever);
  assert(state_ == State::kIdle || group_.receiver_count > 0);
  assert(wire::is_sender_group(group_.virtual_qpn));
#endif
}

}  // namespace cepheus::mrp
