#include "libmcast/engine/addressed_role.h"

#include "wire/situation.h"

namespace cepheus::mcast {

AddressedRole::AddressedRole(GroupState& group)
    : group_(group),
      presence_(group.settings().receiver_time_limit, group.member().qpn.value(),
                group.settings().presence) {}

void AddressedRole::on_message(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
                               GroupOutput& out) {
  if (message.header.type == wire::MrpType::kConfirm) {
    group_.regions().on_confirm(now, message.header);
    if (group_.regions().is_in_force()) on_regions_in_force(now, out);
  }
  take_in(now, from, message, out);
}

void AddressedRole::look(wire::Instant now, GroupOutput& out) {
  if (group_.state() != MCAST_GROUP_ACTIVE) return;
  const Flow& flow = group_.work().flow();
  // A reduction lane's receives are its credit, and always posted.
  const bool waits =
      group_.settings().reduction ? flow.results_awaited() > 0 : flow.receives_posted > 0;
  switch (presence_.look(now, flow.messages_received, waits)) {
    case Presence::Step::kNone:
      return;
    case Presence::Step::kRequest:
      return request_presence(out);
    case Presence::Step::kGiveUp:
      break;
  }
  CEPHEUS_SITUATION("no answer comes to a waiting member until it gives up");
  group_.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_WATCHDOG,
              requested() + " has not answered for " + milliseconds_text(presence_.limit()) +
                  ": it has ended, or the path to it is cut; set up again with fresh groups",
              out);
}

Expected<void> AddressedRole::check_may_name_regions() const {
  return fail(
      MCAST_ERR_INVALID,
      "regions are named to the sender of a sender group only: switches get other groups' by "
      "PUBLISH");
}

mcast_status_t AddressedRole::regions_status() const {
  if (group_.state() == MCAST_GROUP_FAILED) return group_.status();
  const bool is_known = group_.state() != MCAST_GROUP_WAITING;
  return is_known && group_.regions().is_in_force() ? MCAST_OK : MCAST_INPROGRESS;
}

}  // namespace cepheus::mcast
