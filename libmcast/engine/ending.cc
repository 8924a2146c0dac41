#include "libmcast/engine/ending.h"

#include "controller/reject_text.h"

namespace cepheus::mcast {
namespace {

using wire::MrpReject;

Ending before_it_was_active(MrpReject why, wire::Ipv4 leader) {
  return {why == MrpReject::kNone      ? MCAST_ERR_TIMED_OUT
          : why == MrpReject::kIdInUse ? MCAST_ERR_ID_IN_USE
                                       : MCAST_ERR_REJECTED,
          MCAST_CAUSE_REGISTRATION, mrp::given_up_text(why, leader)};
}

}  // namespace

Ending ending_of(bool was_active, MrpReject why, wire::Ipv4 leader) {
  if (!was_active) return before_it_was_active(why, leader);
  const auto failed = [](std::string reason) {
    return Ending{MCAST_ERR_FABRIC, MCAST_CAUSE_LEADER, std::move(reason)};
  };
  switch (why) {
    case MrpReject::kMemberFailed:
      return failed("the leader " + leader.to_string() +
                    " ended the group, since a member failed, perhaps itself: its own reason names "
                    "it; set up again with fresh groups");
    case MrpReject::kRemoteAccess:
      return failed(
          "a WRITE was refused, since some member has no region that holds it: the leader's reason "
          "and cepheusctl groups name that member; set up again with fresh groups");
    case MrpReject::kWriteMode:
      return failed(
          "this fabric's switches can't serve the group's WRITEs: see the leader's reason for the "
          "remedy");
    case MrpReject::kPathLost:
      return failed(
          "a trunk on the way to some members is down; set up again with fresh groups, which take "
          "another way if there is one");
    case MrpReject::kIncomplete:
    case MrpReject::kNotMember:
      return failed(
          "a switch has forgotten the group, it was restarted perhaps; set up again with fresh "
          "groups");
    case MrpReject::kTooLong:
      return failed(
          "packets of the group do not fit through a port on the way any more: the leader's reason "
          "names it; raise its MTU, or set up again with fresh groups, which have smaller packets");
    case MrpReject::kMismatch:
      return failed(
          "members have called different reductions: the leader's reason names two of them; call "
          "the same ones in the same order on all members, and set up again with fresh groups");
    case MrpReject::kOperation:
      return failed(
          "a member has contributed to a reduction that its switch does not serve: the leader's "
          "reason names the member and the operation; bring libmcast and switches to the same "
          "version, or gather the "
          "values, and set up again with fresh groups");
    case MrpReject::kResultRefused:
      return failed(
          "a member's device refused a result: the leader's reason names that member; set "
          "up again with fresh groups");
    case MrpReject::kEvicted:
      return failed("a member was lost, perhaps this one: the leader " + leader.to_string() +
                    " names it; set up again with fresh groups");
    default:
      return {MCAST_ERR_CANCELED, MCAST_CAUSE_LEADER,
              "the leader " + leader.to_string() + " unregistered the group: create fresh groups"};
  }
}

}  // namespace cepheus::mcast
