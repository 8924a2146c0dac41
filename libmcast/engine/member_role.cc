// Membership does the protocol (controller/membership.h) and names tasks; this connects it to the
// group: take part, connect the queue pair, be active, wait, end. REGISTER without a receive
// callback is not answered yet, because the leader repeats it. A member confirms CONNECT once its
// queue pair is connected and its regions are in force.
#include "libmcast/engine/member_role.h"

#include "libmcast/engine/ending.h"
#include "wire/situation.h"

namespace cepheus::mcast {

MemberRole::MemberRole(GroupState& group)
    : AddressedRole(group),
      membership_(group.member(), group.settings().path_mtu,
                  group.settings().reduction.has_value()) {}

// The slots of all members are numbered alike, and all may call the same operations.
Expected<void> MemberRole::check_reduction() const {
  if (!group_.settings().reduction) return {};
  if (group_.settings().reduction->kind != membership_.reduction().kind) {
    return mcast::fail(MCAST_ERR_REJECTED,
                       "its leader and this member differ in floating_sums: set it alike on all");
  }
  const int own = group_.settings().reduction->window, leaders = membership_.reduction().window;
  if (own == leaders) return {};
  return mcast::fail(MCAST_ERR_REJECTED, "its leader has windows of " + std::to_string(leaders) +
                                             " units, and this member of " + std::to_string(own) +
                                             ": set one reduction_window on all members");
}

void MemberRole::take_in(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
                         GroupOutput& out) {
  using Task = mrp::Membership::Task;
  // There is no receive callback yet. The leader repeats the unanswered message.
  if (message.header.type == wire::MrpType::kRegister && !group_.can_receive()) return;
  switch (membership_.on_message(now, from, message, out)) {
    case Task::kNone:
      return;
    case Task::kRegistered:
      group_.take_part();
      if (const auto fits = check_reduction(); !fits) {
        group_.fail(fits.error().status, MCAST_CAUSE_REGISTRATION, fits.error().text, out);
      }
      return;
    case Task::kConnect:
      return connect(now, message.header, out);
    case Task::kActivated:
      if (group_.state() == MCAST_GROUP_REGISTERING) {
        group_.activate(membership_.host_sync(), membership_.path(), out);
      }
      return;
    case Task::kRenewed:
      CEPHEUS_SITUATION("a member learns of a new path");
      return group_.work().renew(membership_.path().window);
    case Task::kWait:
      CEPHEUS_SITUATION("a member waits for data, and lagging members are alive");
      group_.watchdog().reset();
      return on_answer();
    case Task::kStands:
      return on_answer();
    case Task::kDissolved: {
      const bool was_active = membership_.state() == mrp::Membership::State::kGone;
      if (!was_active) CEPHEUS_SITUATION("a group ends at a member before it was active");
      const Ending ending =
          ending_of(was_active, membership_.reject_reason(), membership_.leader());
      return group_.fail(ending.status, ending.cause, ending.reason, out);
    }
  }
}

void MemberRole::connect(wire::Instant now, const wire::MrpHeader& header, GroupOutput& out) {
  connect_ = header;
  RemoteEnd remote = group_end(membership_.id(), membership_.epoch(), membership_.path().mtu);
  if (group_.settings().reduction) remote.unit = membership_.reduction().unit;
  if (!group_.connect(remote, out)) membership_.connected(now, false, out);
}

void MemberRole::on_connected(wire::Instant now, bool ok, GroupOutput& out) {
  if (ok) group_.regions().begin(now, connect_, group_.member());
  // The switch learns the regions first: members may write as soon as they know that the group is
  // active.
  if (!ok || group_.regions().is_in_force()) membership_.connected(now, ok, out);
}

// The queue pair is connected, and only the regions were missing.
void MemberRole::on_regions_in_force(wire::Instant now, mrp::Outbox& out) {
  if (membership_.state() == mrp::Membership::State::kConnecting && !group_.is_connecting()) {
    membership_.connected(now, true, out);
  }
}

void MemberRole::on_timer(wire::Instant now, GroupOutput& out) {
  if (membership_.deadline() <= now) membership_.on_timer(now, out);
}

void MemberRole::send_failure(wire::Instant now, const std::string&, mrp::Outbox& out) {
  membership_.leave(now, out);
}

}  // namespace cepheus::mcast
