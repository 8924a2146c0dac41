// All control datagrams of a context. poll() takes at most 64 at once, checks the fabric's
// signature, and gives each to the group that it names by host and queue pair (REGISTER, INSTALL)
// or by address. A REGISTER that names no queue pair of this process is answered by REJECT. A
// COMPLAIN about a group that has ended is answered by GIVE_UP, so that members do not wait for a
// dead program.
//
// A destroyed leader's registration stays in `leaving_` until UNREGISTER is confirmed or given up.
// Its address rests in the allocator from then on. `busy_` tells the context to poll often.
#include "libmcast/control_plane.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "controller/receiver_membership.h"
#include "wire/times.h"

namespace cepheus::mcast {

constexpr int kMaxDatagramsPerPoll = 64;

ControlPlane::ControlPlane(const ControlPlaneConfig& config,
                           std::unique_ptr<ControlChannel> channel)
    : config_(config),
      channel_(std::move(channel)),
      allocator_(config.pool, config.seed, wire::times::kAddressRest) {}

void ControlPlane::add(Group& group) {
  groups_.push_back(&group);
  busy_ = true;
}

void ControlPlane::remove(wire::Instant now, Group& group) {
  std::erase(groups_, &group);
  pass(group, &GroupEngine::leave, now);
  Role::Registrations left = group.take_registration();
  if (left.of_group) leaving_.push_back(std::move(left.of_group));
  if (left.of_sender_group) leaving_senders_.push_back(std::move(left.of_sender_group));
  run_leaving(now);  // a group that has ended already leaves at once
  send_all(outbox_);
  update_busy();
}

Expected<void> ControlPlane::lead(wire::Instant now, Group& group,
                                  std::span<const mrp::MrpMember> members,
                                  std::span<const wire::MrpRegion::Record> regions) {
  if (group.is_of_sender_group()) return lead_as_sender(now, group, members, regions);
  if (!regions.empty()) {
    return fail(
        MCAST_ERR_INVALID,
        "the leader names regions of sender groups only: switches get other groups' by PUBLISH");
  }
  const auto lease = allocator_.allocate(now);
  if (!lease) return tl::unexpected(Failure{MCAST_ERR_REJECTED, lease.error().text});
  mrp::RegistrationConfig config;
  config.host = config_.host;
  config.instance = config_.instance;
  config.timeout = config_.timeout;
  config.silence = config_.silence;
  config.evict_after = config_.evict_after;
  config.lost_member = group.lost_member();
  auto started = group.handle(&GroupEngine::lead, now, config, *lease, members);
  if (!started) allocator_.free(now, lease->id);
  serve(now, group);
  return started;
}

void ControlPlane::serve(wire::Instant now, Group& group) {
  send_all(group.outbox());
  publish_due(now);
  update_busy();
}

Expected<void> ControlPlane::lead_as_sender(wire::Instant now, Group& group,
                                            std::span<const mrp::MrpMember> members,
                                            std::span<const wire::MrpRegion::Record> regions) {
  if (auto checked = check_virtual_qpn(group); !checked) return checked;
  mrp::SenderConfig config;
  config.host = config_.host;
  config.instance = config_.instance;
  config.control_port = channel_->port();
  config.virtual_qpn = group.virtual_qpn();
  config.timeout = std::min(config_.timeout, config_.silence.value_or(config_.timeout));
  config.evict_after = config_.evict_after;
  config.lost_receiver = group.lost_member();
  auto started = group.handle(&GroupEngine::lead_as_sender, now, config, members, regions);
  serve(now, group);
  return started;
}

// The instance distinguishes groups of other contexts at the switches. Otherwise a repeated REMOVE
// of an earlier group of this context would end a later group of the same number.
Expected<void> ControlPlane::check_virtual_qpn(const Group& group) const {
  const wire::Qpn number = group.virtual_qpn();
  if (!wire::is_sender_group(number)) {
    return fail(
        MCAST_ERR_INVALID,
        "virtual_qpn is 0: the member that leads a sender group needs one, from cepheus-cmd "
        "(<cepheus/connections.h>) or chosen from MCAST_CHOSEN_QPN_FIRST to _LAST");
  }
  const auto leads_with_it = [&](const Group* other) {
    return other != &group && other->is_of_sender_group() && other->engine().role().is_leader() &&
           other->virtual_qpn() == number;
  };
  const auto leaves_with_it = [&](const auto& each) { return each->virtual_qpn() == number; };
  if (std::ranges::any_of(groups_, leads_with_it) ||
      std::ranges::any_of(leaving_senders_, leaves_with_it)) {
    return fail(MCAST_ERR_ID_IN_USE,
                "another sender group of this context has the virtual_qpn, or is being removed: "
                "create fresh groups with another virtual_qpn");
  }
  return {};
}

unsigned ControlPlane::poll(wire::Instant now) {
  unsigned done = 0;
  std::array<std::uint8_t, kMaxDatagram> buffer;
  for (; done < kMaxDatagramsPerPoll; ++done) {
    const auto received = channel_->receive(buffer);
    if (!received) break;
    std::span<const std::uint8_t> datagram = std::span(buffer).first(received->size);
    if (config_.key) {
      const auto verified = config_.key->verify(received->from, datagram);
      if (!verified) continue;
      datagram = *verified;
    }
    if (const auto of_sender_group = wire::SenderGroupMessage::parse(datagram)) {
      take_in(now, received->from, *of_sender_group);
      continue;
    }
    const auto message = wire::MrpMessage::parse(datagram);
    if (message) {
      take_in(now, received->from, *message);
    } else if (const auto refusal = wire::refuse_version(datagram)) {
      send(wire::group_of(*refusal), *refusal);
    }
  }
  return done + run_timers(now);
}

void ControlPlane::take_in(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message) {
  switch (message.header.type) {
    case wire::MrpType::kRegister:
      for (const wire::MrpMember& m : message.list()) {
        if (m.host != config_.host) continue;
        Group* const group = find(m);
        if (group != nullptr && !group->is_of_sender_group()) {
          pass(*group, &GroupEngine::on_message, now, from, message);
        } else {
          refuse_unknown(message);
        }
      }
      break;
    default: {
      bool known = false;
      for (Group* group : groups_) {
        // A leader that gave up may send to a member that never received the group's address.
        const auto named = message.list();
        const auto is_it = [&](const wire::MrpMember& m) { return m.is_same_as(group->member()); };
        const bool is_its_group = group->engine().role().mcst_id() == message.header.mcst_id;
        known |= is_its_group && group->engine().role().is_leader();
        if (is_its_group || std::ranges::any_of(named, is_it)) {
          pass(*group, &GroupEngine::on_message, now, from, message);
        }
      }
      for (const auto& each : leaving_) {
        known |= each->id() == message.header.mcst_id;
        each->on_message(now, from, message, outbox_);
      }
      if (!known) answer_for_unknown_group(from, message);
    }
  }
  send_all(outbox_);
}

void ControlPlane::take_in(wire::Instant now, wire::Ipv4 from,
                           const wire::SenderGroupMessage& message) {
  using wire::MrpType;
  const MrpType type = message.header.type;
  if (type == MrpType::kInstall || type == MrpType::kRemove) {
    for (const wire::MrpMember& m : message.list()) {
      if (m.host != config_.host) continue;
      Group* const group = find(m);
      if (group != nullptr && group->is_of_sender_group()) {
        pass(*group, &GroupEngine::on_sender_group_message, now, from, message);
      } else if (const auto answer = mrp::answer_of_nobody(message, m)) {
        outbox_.of_sender_groups.push_back(*answer);
      }
    }
  } else if (message.sender() == config_.host) {
    for (Group* group : groups_) {
      if (group->engine().role().is_leader()) {
        pass(*group, &GroupEngine::on_sender_group_message, now, from, message);
      }
    }
    for (const auto& each : leaving_senders_) each->on_message(now, from, message, outbox_);
  }
  send_all(outbox_);
}

// REGISTER or INSTALL named a queue pair that has gone, or has the other kind of group.
void ControlPlane::refuse_unknown(const wire::MrpMessage& message) {
  wire::MrpMessage answer;
  answer.header = message.header;
  answer.header.type = wire::MrpType::kReject;
  answer.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kNotMember);
  answer.header.seq = 0;
  answer.header.total = 1;
  for (const wire::MrpMember& m : message.list()) {
    if (m.host == config_.host) answer.add({m.host, m.qpn});
  }
  outbox_.messages.push_back(answer);
}

// A member asks about a group of this process, or of an earlier one on this host, that has ended.
void ControlPlane::answer_for_unknown_group(wire::Ipv4 from, const wire::MrpMessage& message) {
  const bool is_requested = message.header.type == wire::MrpType::kComplain &&
                            message.header.flags == wire::MrpHeader::kPresence;
  if (!is_requested || message.member_count != 1 || message.members[0].host != from) return;
  wire::MrpMessage answer = message;
  answer.header.type = wire::MrpType::kGiveUp;
  answer.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kNotMember);
  outbox_.messages.push_back(answer);
}

void ControlPlane::look(wire::Instant now) {
  for (Group* group : groups_) pass(*group, &GroupEngine::look, now);
}

// Regions of members, which their switch should know of.
unsigned ControlPlane::publish_due(wire::Instant now) {
  unsigned done = 0;
  std::array<std::uint8_t, wire::MrpMessage::kMaxSize> buffer;
  for (Group* group : groups_) {
    const auto publication = group->take_publication(now);
    if (!publication) continue;
    const std::size_t size = publication->emit(buffer);
    send(publication->header.mcst_id, std::span(buffer).first(size));
    ++done;
  }
  return done;
}

unsigned ControlPlane::run_timers(wire::Instant now) {
  unsigned done = publish_due(now);
  for (Group* group : groups_) {
    pass(*group, &GroupEngine::look_for_lagging_members, now);
    if (group->deadline() > now) continue;
    const bool had_outcome = group->engine().has_outcome();
    group->handle(&GroupEngine::on_timer, now);
    if (!had_outcome) note_failed_sends(*group);
    send_all(group->outbox());
    ++done;
  }
  done += run_leaving(now);
  send_all(outbox_);
  update_busy();
  return done;
}

unsigned ControlPlane::run_leaving(wire::Instant now) {
  unsigned done = 0;
  const auto run = [&](const auto& each) {
    if (each->deadline() > now) return;
    each->on_timer(now, outbox_);
    ++done;
  };
  std::ranges::for_each(leaving_, run);
  std::ranges::for_each(leaving_senders_, run);
  std::erase_if(leaving_, [&](const auto& each) {
    if (each->state() != mrp::Registration::State::kGone) return false;
    allocator_.free(now, each->id());
    return true;
  });
  std::erase_if(leaving_senders_, [](const auto& each) {
    return each->state() == mrp::SenderRegistration::State::kGone;
  });
  return done;
}

// 0, or an errno. `message` is not signed yet.
int ControlPlane::send(wire::Ipv4 to, std::span<const std::uint8_t> message) {
  if (!config_.key) return channel_->send(to, message);
  std::array<std::uint8_t, kMaxDatagram> buffer;
  std::copy(message.begin(), message.end(), buffer.begin());
  const std::size_t size = config_.key->sign(config_.host, buffer, message.size());
  return channel_->send(to, std::span(buffer).first(size));
}

void ControlPlane::send_all(mrp::Outbox& outbox) {
  std::array<std::uint8_t, wire::MrpMessage::kMaxSize> buffer;
  const auto note = [this](int error) {
    const bool temporary = error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
    if (!temporary) send_error_ = error;
  };
  for (const wire::MrpMessage& m : outbox.messages) {
    note(send(m.header.mcst_id, std::span(buffer).first(m.emit(buffer))));
  }
  for (const wire::SenderGroupMessage& m : outbox.of_sender_groups) {
    note(send(mrp::destination(m), std::span(buffer).first(m.emit(buffer))));
  }
  outbox.free();  // each group has one
}

// "No answer" would mislead if no request was sent.
void ControlPlane::note_failed_sends(Group& group) {
  if (send_error_ == 0 || group.status() != MCAST_ERR_TIMED_OUT) return;
  group.add_to_reason(
      errno_text("; sending to " + group.engine().role().peer().to_string(), send_error_));
}

wire::Instant ControlPlane::deadline() const {
  wire::Instant earliest = wire::kNever;
  for (const Group* group : groups_) earliest = std::min(earliest, group->deadline());
  for (const auto& each : leaving_) earliest = std::min(earliest, each->deadline());
  for (const auto& each : leaving_senders_) earliest = std::min(earliest, each->deadline());
  return earliest;
}

void ControlPlane::update_busy() {
  busy_ = is_unregistering() ||
          std::ranges::any_of(groups_, [](const Group* g) { return !g->engine().has_outcome(); });
}

bool ControlPlane::is_on_duty() const {
  return is_unregistering() ||
         std::ranges::any_of(groups_, [](const Group* g) { return g->engine().is_on_duty(); });
}

Group* ControlPlane::find(const wire::MrpMember& member) const {
  const auto at =
      std::ranges::find_if(groups_, [&](const Group* g) { return g->member().is_same_as(member); });
  return at == groups_.end() ? nullptr : *at;
}

}  // namespace cepheus::mcast
