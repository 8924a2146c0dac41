// How long hosts wait for each other and for switches, and the relations between these times
// (docs/protocol.md, "Registration", "Members that die or stall", "Timers of the hosts").
//
// A topology may set a switch's times; the defaults are here (kSwitch...). net/time_settings.h
// accepts only times that keep the relations below: hosts rely on these, not on the defaults.
#pragma once

#include <chrono>

#include "wire/types.h"

namespace cepheus::wire::times {

using namespace std::chrono_literals;

// --- Set-up of a group.
inline constexpr Duration kRegister = 1s;  // default limit from REGISTER to the last CONFIRM
inline constexpr Duration kFirstRetry = 20ms;
inline constexpr Duration kLongestRetry = 200ms;
// Between two messages of a leader to all switches of a group that is not active yet: repeats of
// REGISTER go only towards members that have not confirmed.
inline constexpr Duration kRefreshPending = 1s;
// ... of which two may be lost before a switch regards the leader as gone.
inline constexpr Duration kLeastPending = 3 * (kRefreshPending + kLongestRetry);

// --- Leaders in operation.
inline constexpr Duration kRefresh = 2min;
// Between two QUERYs to the switches for lagging members, while a member complains.
inline constexpr Duration kRequestAgain = 250ms;
// How often a leader attends to its groups while its program is elsewhere.
inline constexpr Duration kLook = 250ms;
// A member that complained within this time still waits.
inline constexpr Duration kAskerTimeLimit = 1s;
// A lagging member that is silent for this time is dead. A port that is down is enough.
inline constexpr Duration kEvict = 5s;
// For the last answers to a source that has gone.
inline constexpr Duration kSourceGrace = 500ms;
// Before a freed group address is used again.
inline constexpr Duration kAddressRest = 10s;
// Between two INSTALLs of a sender group in operation. A switch that lacks the group drops its data
// for at most this time.
inline constexpr Duration kInstallAgain = 1s;
// A sender is alive if its INSTALL is younger than this, even after a switch has reported the end.
inline constexpr Duration kSenderLives = kInstallAgain + kLongestRetry;

// --- Members in operation.
// A member complains to its leader after its sends have not moved for this time.
inline constexpr Duration kSenderRequests = 500ms;
// The member gives the group up if its sends have not moved for this time and no lagging member is
// known to be alive. The caller may set another time.
inline constexpr Duration kSenderGivesUp = 8s;
// A member that waits for data asks its leader whether the group still exists: first after this
// time without data, then less and less often.
inline constexpr Duration kReceiverRequests = 1s;
inline constexpr Duration kReceiverRequestsLast = 8s;
// ... and again while no answer comes, up to this time: then it gives the group up.
inline constexpr Duration kReceiverRequestsAgain = 500ms;
inline constexpr Duration kReceiverGivesUp = 5s;
// A member that failed reports it to its leader this often, until it gets an answer.
inline constexpr Duration kLeaveRetry = 100ms;

// --- Others.
// The emulated NIC doubles its time before a repeat up to this value: from 67 ms, six times.
inline constexpr Duration kSourceRepeats = 4300ms;
// Switches, unless their topology sets these: members that have confirmed wait this long for the
// others, to be confirmed with them. With its leader's port down a group goes on for this time,
// then as long without its leader. A freed address is refused for this long. A table is deleted
// that was never activated, or that is neither used nor refreshed.
inline constexpr Duration kSwitchConfirm = 2ms;
inline constexpr Duration kSwitchOrphan = 2s;
// A switch that is a process may lose its core for this time.
inline constexpr Duration kSwitchClock = 4ms;
inline constexpr Duration kSwitchRest = 5s;
inline constexpr Duration kSwitchPending = 5s;
inline constexpr Duration kSwitchAge = 10min;
// ... and a newcomer gets an error after it has waited this long for the end of a silent source's
// turn.
inline constexpr Duration kSwitchGate = 10s;
// Between two HELLOs on a trunk. A trunk that misses this many in a row is dark.
inline constexpr Duration kHello = 25ms;
inline constexpr unsigned kHellosMissed = 8;
// Between two CNPs of one connection, by NICs. Switches count CNPs over a time that outlasts the
// burst of a sender at full rate, and the queue after one reduction of its rate.
inline constexpr Duration kCnpGap = 50us;
inline constexpr Duration kSwitchCnpWindow = 25ms;

// From a member's complaint to the leader's reaction: its check, the switches' answer, its next
// check.
inline constexpr Duration kLeaderActs = kLook + kRequestAgain;
// From the start of a member's silence until its leader has evicted it.
inline constexpr Duration kLeaderEvicts = kSenderRequests + kLeaderActs + kEvict + kLongestRetry;

// A member that is silent between two repeats is not dead.
static_assert(kEvict > kSourceRepeats);
// No member gives up a group that can be saved: the leader first evicts silent members. If the
// leader has gone, its switch first evicts it, and then the group ends.
static_assert(kSenderGivesUp > kLeaderEvicts);
static_assert(kSenderGivesUp > 2 * kSwitchOrphan);
// A leader remembers a waiting member between two of its COMPLAINs, and answers before the last
// one.
static_assert(kSenderRequests + kLook <= kAskerTimeLimit);
static_assert(kReceiverRequestsAgain + kLook <= kAskerTimeLimit);
// A leader that stopped for a moment is not gone.
static_assert(kReceiverGivesUp >= kEvict);
// A leader sends so often that a switch that loses two of three REFRESHs keeps the group.
static_assert(3 * kRefresh < kSwitchAge);
// A receiver that got none of several INSTALLs has lost its sender; the same holds for a switch.
static_assert(4 * kInstallAgain < kReceiverGivesUp && kReceiverGivesUp < kSwitchAge);
// Receivers believe a switch that reports their sender as gone.
static_assert(kSenderLives < kSwitchOrphan);
// A restarted switch knows the sender group again before any receiver counts as silent.
static_assert(kInstallAgain + kLongestRetry < kEvict);
// A slow registration is not forgotten between two repeats, even if some are lost.
static_assert(kSwitchPending > kLeastPending);
// A host never draws an address that a switch still refuses.
static_assert(kAddressRest > kSwitchRest);
// A leader does not repeat for members that switches only hold back, over three switches on the
// way.
static_assert(3 * kSwitchConfirm < kFirstRetry);
// Retries fit into the times of their operations.
static_assert(4 * kLongestRetry < kRegister);

}  // namespace cepheus::wire::times
