// A text is the refusing host, what it refused, the reason, and the remedy. Lists name kShown
// members and count the rest. A reason of a newer version is shown by its number. Only a malformed
// registration is kInvalid; every other reason is kRefused.
#include "controller/reject_text.h"

#include <cstdio>

#include "arithmetic/combine.h"
#include "arithmetic/contribution_text.h"
#include "wire/reduction.h"

namespace cepheus::mrp {
namespace {

using wire::MrpReject;

std::string list_of(std::span<const MrpMember> members, const char* nobody = "a member") {
  constexpr std::size_t kShown = 4;
  if (members.empty()) return nobody;
  std::string text;
  for (std::size_t i = 0; i < members.size() && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += to_string(members[i]);
  }
  if (members.size() > kShown) text += " and " + std::to_string(members.size() - kShown) + " more";
  return text;
}

std::string contribution_text(const MrpMember& member) {
  const auto what = wire::ReductionImm::from_what(member.flags);
  return arithmetic::contribution_text(what.operation, what.type, member.token);
}

std::string contributions_text(std::span<const MrpMember> named) {
  std::string text;
  for (const MrpMember& member : named) {
    if (!text.empty()) text += ", and ";
    text += to_string(member) + " has contributed " + contribution_text(member);
  }
  return text;
}

// There is such an operation on this type, but not of this number of bytes.
bool divides_value(const MrpMember& member) {
  const auto what = wire::ReductionImm::from_what(member.flags);
  const auto combiner = arithmetic::Combiner::find(what.operation, what.type);
  return combiner && member.token % combiner->size() != 0;
}

std::string operation_text(std::span<const MrpMember> named) {
  if (!named.empty() && divides_value(named.front())) {
    return contributions_text(named) +
           ", and these are not whole values: bring that member and the switches to the same "
           "version, and create fresh groups";
  }
  return (named.empty() ? "a member has contributed to an operation that"
                        : contributions_text(named) + ", which") +
         " this switch does not serve: bring that member and the switches to the same version, or "
         "gather the values, and create fresh groups";
}

// The reason and the remedy, without the host that sent it.
std::string reason_and_remedy(MrpReject reason, McstId id, std::span<const MrpMember> named) {
  switch (reason) {
    case MrpReject::kTableFull:
      return "the switch has no table space for another group: free groups or raise max_groups";
    case MrpReject::kQuota:
      return "the host leads as many groups as the switch lets one host lead: free groups or raise "
             "max_groups_per_host";
    case MrpReject::kNoRoute:
      return "the switch has no route to " + list_of(named) +
             ": see whether trunks are down (cepheusctl ports), add the host to the switch's "
             "topology, or leave it out of the group";
    case MrpReject::kIdInUse:
      if (!named.empty()) {
        return list_of(named) +
               " already belongs to another leader's group: create fresh groups and agree on one "
               "leader";
      }
      return "the group address " + id.to_string() +
             " belongs to another leader or was freed a moment ago: register fresh groups, which "
             "draw another address";
    case MrpReject::kMalformed:
      return "the registration could not be read: bring leader and switch to the same version";
    case MrpReject::kNotAuthorised:
      return "the registration is not authorised: give the leader the fabric's key";
    case MrpReject::kNotMember:
      return list_of(named) +
             " is unknown to its host: the group was destroyed there, or is of another kind: "
             "create fresh groups of one kind on all members";
    case MrpReject::kMemberFailed:
      return list_of(named) + " has failed: the group's reason on that host names the cause";
    case MrpReject::kEvicted:
      return "a member was lost in operation: create fresh groups";
    case MrpReject::kVersion:
      return "it speaks another version of the registration protocol: bring leader, members and "
             "switches to the same version";
    case MrpReject::kIncomplete:
      return "it was restarted perhaps: create fresh groups";
    case MrpReject::kTooManyPaths:
      return "the members need more ports of one switch than a group may have there: raise "
             "max_paths, or spread the hosts over more switches";
    case MrpReject::kPathLost:
      return "a trunk on the way to " + list_of(named, "some members") +
             " is down: create fresh groups, which take another way if there is one";
    case MrpReject::kRemoteAccess:
      return list_of(named) +
             " has published no region that holds the WRITE, or has taken its memory back: "
             "cepheusctl groups shows the refused WRITE; publish before writing, and create fresh "
             "groups";
    case MrpReject::kWriteMode:
      return list_of(named) +
             " publishes memory regions, or has its WRITEs announced, and this fabric's write_mode "
             "is another: regions need \"regions\", groups with per_request \"per-request\"; where "
             "it is \"same-key\", create groups with same_key";
    case MrpReject::kNoSenderGroups:
      return "the switches serve no sender groups: set sender_groups = \"everywhere\" or \"racks\" "
             "in the topology file, or create groups without sender_group";
    case MrpReject::kTooLong:
      return "it does not fit through the port towards " + list_of(named, "some members") +
             ": raise the MTU there, or create fresh groups, which have smaller packets";
    case MrpReject::kNoMemory:
      return "the switch has no memory left for this reduction group" +
             (named.empty() ? "" : ", at the port towards " + list_of(named)) +
             ": free groups, lower reduction_window, create it without floating_sums, or raise the "
             "switch's reduction_memory";
    case MrpReject::kNotServed:
      return "the switch does not serve this kind of reduction group: bring leader and switches to "
             "the same version";
    case MrpReject::kMismatch:
      return (named.empty() ? "two members have contributed different things"
                            : contributions_text(named)) +
             ", to one unit: call the same reductions in the same order on all members, and create "
             "fresh groups";
    case MrpReject::kOperation:
      return operation_text(named);
    case MrpReject::kResultRefused:
      return list_of(named) +
             " had no receive that holds a result, or its device failed: the group's reason on "
             "that host names the cause";
    case MrpReject::kNone:
      break;
  }
  return "a reason that this version does not have (" +
         std::to_string(static_cast<unsigned>(reason)) +
         "): bring leader and switch to the same version";
}

}  // namespace

std::string to_string(const MrpMember& member) {
  char qpn[16];
  std::snprintf(qpn, sizeof qpn, "0x%x", member.qpn.value());
  return member.host.to_string() + " (qp " + qpn + ")";
}

std::string reject_text(MrpReject reason, Ipv4 from, McstId id, std::span<const MrpMember> named) {
  const char* what = reason == MrpReject::kPathLost        ? " has lost a path: "
                     : reason == MrpReject::kIncomplete    ? " has forgotten members: "
                     : reason == MrpReject::kRemoteAccess  ? " refused a WRITE: "
                     : reason == MrpReject::kWriteMode     ? " can't serve the group's WRITEs: "
                     : reason == MrpReject::kTooLong       ? " dropped a packet of the group: "
                     : reason == MrpReject::kMismatch      ? " can't reduce: "
                     : reason == MrpReject::kOperation     ? " can't reduce: "
                     : reason == MrpReject::kResultRefused ? " could not deliver a result: "
                                                           : " refused the registration: ";
  return from.to_string() + what + reason_and_remedy(reason, id, named);
}

std::string taken_text(Ipv4 from, Ipv4 sender, wire::Qpn virtual_qpn) {
  char number[16];
  std::snprintf(number, sizeof number, "0x%x", virtual_qpn.value());
  return from.to_string() + " refused the registration: another sender group of " +
         sender.to_string() + " has the virtual QPN " + number +
         ", or had it a moment ago: create fresh groups with another virtual_qpn";
}

std::string time_out_text(std::span<const MrpMember> missing, std::size_t members, Duration timeout,
                          bool is_silence) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g s", std::chrono::duration<double>(timeout).count());
  const std::string text = list_of(missing) + " did not confirm" +
                           (is_silence ? ", and no other member did for " : " within ") + seconds;
  if (missing.size() + 1 == members) {
    return text +
           ": no member answered, see whether the switch serves multicast groups of this version "
           "(cepheusctl counters: drop_malformed)";
  }
  return text +
         ": see whether it runs and calls mcast_progress(), or raise the registration time-out";
}

std::string given_up_text(MrpReject reason, Ipv4 leader) {
  const std::string who = "the leader " + leader.to_string() + " gave the registration up: ";
  if (reason == MrpReject::kNone) {
    return who + "not every member confirmed in time, the leader's error names the missing ones";
  }
  return who + wire::to_string(reason) + ", the leader's error has the remedy";
}

wire::ErrorCode reject_code(MrpReject reason) {
  return reason == MrpReject::kMalformed ? wire::ErrorCode::kInvalid : wire::ErrorCode::kRefused;
}

}  // namespace cepheus::mrp
