// Feedback: merging ACKs, ordering NAKs, passing fatal ones and congestion notifications (paper
// III-D; docs/protocol.md, "Feedback").
#pragma once

#include "switch-emulator/engine/one_source.h"

namespace cepheus::fabric {

struct Call;

// Takes an ACK, NAK or RNR NAK that came by path `path`; answers the source if that changes what
// all have.
void take_feedback(Call& call, OneSource& group, PathNo path, const wire::RoceHeaders& headers);

// Passes a congestion notification on to the source, if it is to hear it.
void take_cnp(Call& call, OneSource& group, const GroupPacket& packet);

// Tells the source what all have acknowledged, again if need be.
void acknowledge_to_source(Call& call, OneSource& group);

// The source has begun again: if the last one is not known to have synchronised its PSNs by now, it
// should begin once more (without rebasing only).
void ask_to_wait_again(Call& call, OneSource& group);

// The host at `path` sends with the PSN that follows all that was sent: it has received that.
// Without rebasing its send PSN is what its receive PSN was.
void acknowledge_by_sending(Call& call, OneSource& group, PathNo path);

// Requests from the source the first packet that a path has not acknowledged, if feedback is
// overdue. Returns when to look again.
Instant ask_again_if_overdue(Call& call, OneSource& group);

// A path has left: what the others have acknowledged may be all that was waited for.
void recheck(Call& call, OneSource& group);

// Ends the source's connection with a fatal NAK, acknowledging no more than all have.
void fail_source(Call& call, OneSource& group, std::uint8_t code);

}  // namespace cepheus::fabric
