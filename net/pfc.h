// Priority flow control (IEEE 802.1Qbb) on links: which class is lossless, and how much is on its way
// when a neighbour is told to stop.
#pragma once

#include "net/link.h"
#include "net/traffic_class.h"
#include "wire/pause.h"

namespace cepheus::net {

// As pause frames call the classes.
constexpr std::size_t priority_of(TrafficClass of) { return of == TrafficClass::kData ? 3 : 6; }

// What a neighbour can still send into this port when the port has sent its pause: all that is on the
// cable, and what goes onto it until the pause is there, which waits for the frame that is being sent
// the other way. The neighbour ends the frame that it has begun; and the frame that made the port
// speak is in the headroom already.
wire::Bytes headroom_for(const LinkConfig& in, const LinkConfig& out, wire::Bytes largest_frame);

// The pause frame for data, or the end of it.
void emit_pause(wire::Frame& frame, wire::Mac source, bool pause);
// How long data is to be silent on the link of this rate that is paused, from now on, or nothing if it does not say.
std::optional<wire::Duration> data_pause(const wire::Frame& frame, wire::BitRate rate);
// Between two pause frames of a long pause of a link of this rate: well before the first one's time
// is up.
wire::Duration pause_repeat(wire::BitRate rate);

}  // namespace cepheus::net
