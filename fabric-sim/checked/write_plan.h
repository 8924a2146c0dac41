// Seeds whose members write into each other's regions, beside what they send.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {

// Makes WRITEs of most messages, some of them with immediate, into a few places of a region that
// all members have, each elsewhere in its memory; the last message of some seeds goes beyond the
// region's end. Keeps rule C1 in all groups: else nobody could say what a region should hold.
// `untold_ends`: a turn may end with a WRITE without immediate, and its source tells the others.
void use_writes(ScenarioPlan& plan, bool untold_ends);
// ... each announced by a packet before it. Groups of more members than one can name only send.
void use_announcements(ScenarioPlan& plan);

}  // namespace cepheus::sim
