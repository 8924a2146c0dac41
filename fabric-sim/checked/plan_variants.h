// What options make of a seed's plan. Each draws from a random stream of its own, so that the rest of
// the plan stays as it is without the option.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

// Hosts have NICs of different makes: each draws the emulated NIC's own quirks, one
// other manner, or those of rdma_rxe.
void use_other_nics(ScenarioPlan& plan);

// Switches leave the groups' PSNs to hosts, which move them on through RESET (controller/psn_sync.h).
// Keeps rule C1 in all groups: without it nothing tells whose turn a PSN belongs to.
void use_host_sync(ScenarioPlan& plan);

// Makes WRITEs of most messages, some of them with immediate, into a few places of a region that
// all members have, each elsewhere in its memory; the last message of some seeds goes beyond the
// region's end. Keeps rule C1 in all groups: else nobody could say what a region should hold.
// `untold_ends`: a turn may end with a WRITE without immediate, and its source tells the others.
void use_writes(ScenarioPlan& plan, bool untold_ends);
// ... each announced by a packet before it. Groups of more members than one can name only send.
void use_announcements(ScenarioPlan& plan);

// Turns that are longer than PSNs can be compared: lets sources jump over 2^22 to 2^32 packets behind
// some of their messages, or 2^24 at most where hosts move their PSNs on, since that takes a step for
// every 2^22. Groups begin with PSNs, epochs and publications close before the wrap. Of sender groups
// nothing changes.
void use_long_turns(ScenarioPlan& plan, bool host_sync);

// Queues of a few packets, that mark early; in most seeds all links are lossless as well, and nothing
// is doubled or held back on the way: what a cable makes of its own no headroom can count on. In some
// of them switches halt groups. Some policy for notifications in each switch; most NICs listen to
// marks and pace themselves.
void use_congestion(ScenarioPlan& plan);

}  // namespace cepheus::sim
