// ReceiverMembership does the protocol; this connects the queue pair to the sender when the first
// INSTALL with the path MTU arrives. One that measures the way only names this receiver. The sender
// refreshes INSTALL. If none comes for receiver_time_limit, the group fails here: the sender is
// gone, has evicted this receiver, or can't be reached.
#include "libmcast/engine/receiver_role.h"

#include "libmcast/engine/ending.h"
#include "wire/situation.h"

namespace cepheus::mcast {

using ReceiverTask = mrp::ReceiverMembership::Task;

ReceiverRole::ReceiverRole(GroupState& group)
    : SenderGroupRole(group),
      membership_(group.member(), group.settings().sender_lives, group.settings().path_mtu),
      silence_(group.settings().receiver_time_limit) {}

Expected<void> ReceiverRole::check_may_send() const {
  return fail(
      MCAST_ERR_INVALID,
      "only the member that leads a sender group sends: create groups without sender_group, "
      "or one for each sender");
}

void ReceiverRole::on_sender_group_message(wire::Instant now, wire::Ipv4,
                                           const wire::SenderGroupMessage& message,
                                           GroupOutput& out) {
  switch (membership_.on_message(now, message, out)) {
    case ReceiverTask::kNone:
      return;
    case ReceiverTask::kNamed:
      return group_.take_part();
    case ReceiverTask::kConnect: {
      group_.take_part();
      const RemoteEnd remote{membership_.sender(), membership_.virtual_qpn(),
                             membership_.start_psn(), membership_.path_mtu()};
      if (!group_.connect(remote, out)) membership_.connected(false, out);
      return;
    }
    case ReceiverTask::kActivated:
      if (group_.state() == MCAST_GROUP_REGISTERING) group_.activate(false, {}, out);
      return;
    case ReceiverTask::kEnded: {
      const bool was_active = membership_.state() == mrp::ReceiverMembership::State::kGone;
      if (!was_active) CEPHEUS_SITUATION("a sender group ends at a receiver before it was active");
      const Ending ending =
          ending_of(was_active, membership_.reject_reason(), membership_.sender());
      return group_.fail(ending.status, ending.cause, ending.reason, out);
    }
  }
}

void ReceiverRole::look(wire::Instant now, GroupOutput& out) {
  if (group_.state() == MCAST_GROUP_FAILED) return;
  if (!silence_.look(now, membership_.installs_received(), membership_.takes_part())) return;
  CEPHEUS_SITUATION("a sender is silent until a receiver gives up");
  group_.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WATCHDOG,
              "the sender " + membership_.sender().to_string() + " has been silent for " +
                  milliseconds_text(silence_.limit()) +
                  ": it has ended, or has evicted this member, or the path to it is cut; set up "
                  "again with fresh groups",
              out);
}

void ReceiverRole::send_failure(wire::Instant, const std::string&, mrp::Outbox& out) {
  membership_.leave(out);
}

}  // namespace cepheus::mcast
