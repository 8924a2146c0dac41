// Changes that options make to a seed's plan. Each draws from its own random stream, so that other
// parts of the plan stay as they are without the option.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

// Hosts have NICs of the make `options.nic`; empty: of one make or of several that the seed draws.
// The emulated NIC stands in for makes that such seeds can't live with: with host_sync those that
// can't set their PSNs. Precondition: the name is empty or known.
void use_makes(ScenarioPlan& plan, const PlanOptions& options);

// In three seeds of ten hosts' NICs and links have path MTUs from 1024 to 4096. Precondition: no link
// is lossless.
void use_mtus(ScenarioPlan& plan);

// In one seed of five the switches are programs on boxes, with rings for all ports and sometimes two
// transmit queues. Seeds draw neither swallowed packets nor dropped long ones: no group can come up
// then, and a box refuses to start. Precondition: no link is lossless.
void use_boxes(ScenarioPlan& plan);

// Switches leave the groups' PSNs to hosts, which set them through RESET (controller/psn_sync.h).
// Keeps rule C1 in all groups: without it a PSN's turn would be unknown.
void use_host_sync(ScenarioPlan& plan);

// Makes most messages WRITEs, some of them with immediate, to a few places of a region that all
// members have, each at another address. The last message of some seeds goes beyond the region's
// end. Keeps rule C1 in all groups: without it the content of a region would be undefined.
// `silent_ends`: a turn may end with a WRITE without immediate, and its source informs the others.
void use_writes(ScenarioPlan& plan, bool silent_ends);
// ... each announced by a packet before it. Groups with too many members for an announcement only
// send.
void use_announcements(ScenarioPlan& plan);

// Turns beyond the range of PSN comparisons: sources jump over 2^22 to 2^32 packets behind some of
// their messages, or up to 2^24 where hosts set their PSNs, since that takes a step for every 2^22.
// Groups begin with PSNs, epochs and publications close before the wrap. Sender groups do not
// change.
void use_long_turns(ScenarioPlan& plan, bool host_sync);

// Queues of a few packets that mark early. In most seeds all links are lossless as well, and cables
// neither duplicate nor delay frames, since headroom can't include such frames. In some of these
// seeds switches halt groups. Each switch has one of the CNP policies; most NICs react to marks and
// pace themselves.
void use_congestion(ScenarioPlan& plan);

}  // namespace cepheus::sim
