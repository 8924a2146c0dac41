#include "libmcast/engine/group_engine.h"

#include <algorithm>

#include "controller/reject_text.h"
#include "libmcast/engine/leader_role.h"
#include "libmcast/engine/member_role.h"
#include "libmcast/engine/receiver_role.h"
#include "libmcast/engine/sender_role.h"

namespace cepheus::mcast {

GroupEngine::GroupEngine(const GroupSettings& settings, mrp::Publisher regions)
    : group_(settings, std::move(regions)) {
  if (settings.is_sender_group) {
    role_ = std::make_unique<ReceiverRole>(group_);
  } else {
    role_ = std::make_unique<MemberRole>(group_);
  }
}

Expected<void> GroupEngine::check_may_send() const {
  if (auto may = role_->check_may_send(); !may) return may;
  return group_.check_active();
}

bool GroupEngine::is_on_duty() const {
  if (!role_->is_leader()) return false;
  return group_.state() == MCAST_GROUP_ACTIVE ||
         (group_.state() == MCAST_GROUP_FAILED && role_->deadline() != wire::kNever);
}

bool GroupEngine::has_outcome() const {
  return group_.state() == MCAST_GROUP_FAILED ||
         (group_.state() == MCAST_GROUP_ACTIVE && role_->regions_status() == MCAST_OK);
}

// --- Registration.

Expected<void> GroupEngine::check_may_lead(std::span<const mrp::MrpMember> members) const {
  if (auto stands = group_.check_not_failed(); !stands) return stands;
  if (!group_.can_receive()) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "set the receive callback before the group is registered");
  }
  if (std::ranges::find(members, group_.member()) == members.end()) {
    return mcast::fail(MCAST_ERR_INVALID, mrp::to_string(group_.member()) +
                                              ", the leader itself, is not among the members: add "
                                              "mcast_group_member()'s name");
  }
  if (group_.state() != MCAST_GROUP_WAITING) {
    return mcast::fail(MCAST_ERR_INVALID, "the group has a leader already: use a fresh group");
  }
  return {};
}

Expected<void> GroupEngine::lead(wire::Instant now, mrp::RegistrationConfig config,
                                 const mrp::McstAllocator::Lease& lease,
                                 std::span<const mrp::MrpMember> members, GroupOutput& out) {
  if (auto may = check_may_lead(members); !may) return may;
  config.path_mtu = group_.settings().path_mtu;
  config.reduction = group_.settings().reduction;
  if (config.reduction) config.lost_member = mrp::LostMember::kEndsGroup;
  auto role = std::make_unique<LeaderRole>(group_, config, lease);
  if (auto started = role->start(now, members, out); !started) return started;
  role_ = std::move(role);
  group_.take_part();
  return {};
}

Expected<void> GroupEngine::lead_as_sender(wire::Instant now, const mrp::SenderConfig& config,
                                           std::span<const mrp::MrpMember> members,
                                           std::span<const wire::MrpRegion::Record> regions,
                                           GroupOutput& out) {
  if (auto may = check_may_lead(members); !may) return may;
  auto role = std::make_unique<SenderRole>(group_, config);
  if (auto started = role->start(now, members, regions, out); !started) return started;
  role_ = std::move(role);
  group_.take_part();
  return {};
}

void GroupEngine::on_message(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
                             GroupOutput& out) {
  role_->on_message(now, from, message, out);
  send_failure(now, out);
}

void GroupEngine::on_sender_group_message(wire::Instant now, wire::Ipv4 from,
                                          const wire::SenderGroupMessage& message,
                                          GroupOutput& out) {
  role_->on_sender_group_message(now, from, message, out);
  send_failure(now, out);
}

void GroupEngine::on_timer(wire::Instant now, GroupOutput& out) {
  role_->on_timer(now, out);
  send_failure(now, out);
}

void GroupEngine::connected(wire::Instant now, const Expected<void>& outcome, GroupOutput& out) {
  group_.connected();
  if (!outcome) {
    group_.fail(outcome.error().status, MCAST_CAUSE_REGISTRATION, outcome.error().text, out);
  }
  role_->on_connected(now, group_.state() != MCAST_GROUP_FAILED, out);
  send_failure(now, out);
}

void GroupEngine::leave(wire::Instant now, GroupOutput& out) {
  send_failure(now, out);
  failure_is_sent_ = true;
  role_->leave(now, out);
}

// --- The source changes.

void GroupEngine::synchronise(GroupOutput& out) {
  if (!work().is_sync_due()) return;
  const auto step = work().sync().begin_step(work().flow().sends_outstanding);
  out.actions.push_back({GroupAction::Kind::kStep, {}, step});
}

void GroupEngine::stepped(wire::Instant now, const Expected<void>& outcome, GroupOutput& out) {
  const bool is_running = work().sync().end_step() != PairSync::Step::kStop;
  if (!outcome) {
    return fail(now, outcome.error().status, MCAST_CAUSE_WORK, outcome.error().text, out);
  }
  if (!is_running || group_.state() == MCAST_GROUP_FAILED) return;
  work().sync().done();
  out.actions.push_back({GroupAction::Kind::kPostReceives});  // those kept during the step
}

void GroupEngine::on_psns(wire::Instant now, const Expected<PairSync::Psns>& psns,
                          GroupOutput& out) {
  if (!psns) return fail(now, psns.error().status, MCAST_CAUSE_WORK, psns.error().text, out);
  if (work().sync().on_psns(*psns)) return;
  fail(now, MCAST_ERR_NO_DEVICE, MCAST_CAUSE_DEVICE,
       "the device's PSNs stand still over a message, so hosts can't synchronise them: set "
       "source_change = \"rebase\" on all switches",
       out);
}

// --- Failures.

void GroupEngine::set_watched(bool watched) {
  watched_ = watched;
  awaited_ = {};
}

void GroupEngine::look_for_lagging_members(wire::Instant now, GroupOutput& out) {
  const Flow& flow = work().flow();
  // A result may lie in the completion queue, so look() asks, once all has been taken in.
  if (group_.settings().reduction) return;
  request_unless_moving(now, {flow.messages_sent, flow.sends_outstanding}, out);
}

// Of a reduction a send ends once the switch has stored it. Its result waits for all members.
void GroupEngine::look_for_late_results(wire::Instant now, GroupOutput& out) {
  const Flow& flow = work().flow();
  request_unless_moving(now, {flow.messages_received, flow.results_awaited() > 0 ? 1 : 0}, out);
}

void GroupEngine::request_unless_moving(wire::Instant now, Awaited awaited, GroupOutput& out) {
  if (group_.state() != MCAST_GROUP_ACTIVE || !watched_ || awaited.second == 0) return;
  if (awaited != awaited_) {
    awaited_ = awaited;
    unmoved_since_ = now;
  } else if (now - unmoved_since_ >= group_.settings().requests_after) {
    unmoved_since_ = now;
    role_->send_request(now, out);
  }
}

void GroupEngine::look(wire::Instant now, GroupOutput& out) {
  if (group_.settings().reduction) look_for_late_results(now, out);
  look_for_stall(now, out);
  role_->look(now, out);
  send_failure(now, out);
}

void GroupEngine::look_for_stall(wire::Instant now, GroupOutput& out) {
  if (group_.state() != MCAST_GROUP_ACTIVE) return;
  Watchdog& watchdog = group_.watchdog();
  const Flow& flow = work().flow();
  if (!watchdog.look(now, flow.sends_completed, watched_ && flow.sends_outstanding > 0)) return;
  const char* const cause =
      group_.settings().reduction
          ? "its switch stopped acknowledging, or the path to it is cut"
          : "a member or the switch stopped acknowledging, cepheusctl groups shows the lagging "
            "members";
  group_.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WATCHDOG,
              "no send completed for " + milliseconds_text(watchdog.limit()) + ": " + cause +
                  "; set up again with fresh groups",
              out);
}

void GroupEngine::fail(wire::Instant now, mcast_status_t status, mcast_cause_t cause,
                       std::string reason, GroupOutput& out) {
  group_.fail(status, cause, std::move(reason), out);
  send_failure(now, out);
}

void GroupEngine::send_failure(wire::Instant now, GroupOutput& out) {
  if (group_.state() != MCAST_GROUP_FAILED || std::exchange(failure_is_sent_, true)) return;
  role_->send_failure(now, group_.reason(), out);
}

}  // namespace cepheus::mcast
