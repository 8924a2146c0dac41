// The meaning of a REJECT, or a time-out, for a user: the reason and the remedy.
#pragma once

#include <span>
#include <string>

#include "controller/registration.h"

namespace cepheus::mrp {

// "10.0.0.3 (qp 0x12)".
std::string to_string(const MrpMember& member);
// For a leader: `from` refused the group `id`; `named` are the members in the REJECT.
std::string reject_text(wire::MrpReject reason, Ipv4 from, McstId id,
                        std::span<const MrpMember> named);
// For the sender of a sender group: `from` refused its virtual QPN.
std::string taken_text(Ipv4 from, Ipv4 sender, wire::Qpn virtual_qpn);
// For a leader: `missing` of all `members` have not confirmed in `timeout`.
std::string time_out_text(std::span<const MrpMember> missing, std::size_t members, Duration timeout,
                          bool is_silence = false);
// For a member: the leader gave up (kNone: because of a time-out).
std::string given_up_text(wire::MrpReject reason, Ipv4 leader);
// The code from which the caller chooses its next step.
wire::ErrorCode reject_code(wire::MrpReject reason);

}  // namespace cepheus::mrp
