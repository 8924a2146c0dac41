// Feedback: merging ACKs, ordering NAKs, passing fatal ones and congestion notifications (paper
// III-D; docs/protocol.md, "Feedback").
#pragma once

#include "switch-emulator/engine/group/group.h"

namespace cepheus::fabric {

struct Call;

// Handles an ACK, NAK or RNR NAK; sends feedback to the source if the minimum changes.
void take_feedback(Call& call, Group& group, const GroupPacket& packet);

// Passes a congestion notification to the source, if the policy allows.
void take_cnp(Call& call, Group& group, const GroupPacket& packet);

// Sends the source the acknowledgement of all paths, repeated if necessary.
void acknowledge_to_source(Call& call, Group& group);

// The source has begun again. If the last source is not known to have set its PSNs by now, asks it
// to begin once more (host-sync only).
void extend_wait(Call& call, Group& group);

// The host at `path` sends with the PSN after all sent packets: it has received these. With
// host-sync its send PSN equals its receive PSN.
void acknowledge_by_sending(Call& call, Group& group, PathNo path);

// If feedback is overdue, requests from the source the first packet that a path has not
// acknowledged. Returns the time of the next check.
Instant request_if_overdue(Call& call, Group& group);

// Repeats the last ACKs of turns that rest or have ended. Returns the time of the next check.
Instant repeat_last_acks(Call& call, Group& group);

// A path has left: all packets may now have been acknowledged.
void recheck(Call& call, Group& group);

// Ends the source's connection with a fatal NAK that acknowledges no more than all have.
void fail_source(Call& call, Group& group, const wire::Aeth& error);

}  // namespace cepheus::fabric
