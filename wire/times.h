// How long hosts wait for each other and for switches, and how those times depend on each other
// (docs/protocol.md, "Registration", "Members that die or stall", "Timers of the hosts").
//
// A topology may change what a switch waits for: those are the defaults here (kSwitch...). What else
// it may say is what net/time_settings.h takes: hosts rely on the relations below, not on the
// defaults.
#pragma once

#include <chrono>

#include "wire/types.h"

namespace cepheus::wire::times {

using namespace std::chrono_literals;

// --- Setting a group up.
inline constexpr Duration kRegister = 1s;  // from REGISTER to the last CONFIRM, if nobody says
inline constexpr Duration kFirstRetry = 20ms;
inline constexpr Duration kLongestRetry = 200ms;
// Between two words of a leader to all switches of a group that is not active yet: repeats of
// REGISTER go only towards members that have not confirmed.
inline constexpr Duration kRefreshPending = 1s;
// ... of which two may be lost before a switch takes the leader for gone.
inline constexpr Duration kLeastPending = 3 * (kRefreshPending + kLongestRetry);

// --- Leaders in operation.
inline constexpr Duration kRefresh = 2min;
// Between two questions to the switches who holds the group up, while somebody does.
inline constexpr Duration kAskAgain = 250ms;
// How often a leader looks after its groups though its program is elsewhere.
inline constexpr Duration kLook = 250ms;
// A member that asked within this time still waits.
inline constexpr Duration kAskerTimeLimit = 1s;
// Silence after which a member that lags is taken for dead; a port that is down is enough.
inline constexpr Duration kEvict = 5s;
// For the last answers to a source that is gone.
inline constexpr Duration kSourceGrace = 500ms;
// Before a freed group address is used again.
inline constexpr Duration kAddressRest = 10s;
// Between two INSTALLs of a sender group in operation: how long a switch that lacks it drops its data.
inline constexpr Duration kInstallAgain = 1s;
// Within this time of one its sender lives, whatever a switch that forgets the group takes it for.
inline constexpr Duration kSenderLives = kInstallAgain + kLongestRetry;

// --- Members in operation.
// Sends that have not moved for so long make a member ask who holds them up.
inline constexpr Duration kSenderAsks = 500ms;
// Sends that have not moved for so long, and nobody who is waited for is known to be alive: the
// group is given up, if nobody says how long to wait.
inline constexpr Duration kSenderGivesUp = 8s;
// A member that waits for data asks its leader whether the group still stands: after so long
// without any, then less and less often.
inline constexpr Duration kReceiverAsks = 1s;
inline constexpr Duration kReceiverAsksLast = 8s;
// ... and again while nobody answers, until so long has gone by: the group is given up.
inline constexpr Duration kReceiverAsksAgain = 500ms;
inline constexpr Duration kReceiverGivesUp = 5s;
// A member that failed tells its leader so often, unless it is answered.
inline constexpr Duration kLeaveRetry = 100ms;

// --- Of others.
// The longest that the emulated NIC waits before it repeats a packet: 67 ms, doubled six times.
inline constexpr Duration kSourceRepeats = 4300ms;
// Switches, where their topology says nothing else: those who have confirmed wait so long for the
// others, to be named with them; a group whose leader's port is down goes on for so long, then as
// long without its leader; a freed address is refused for so long; a table that was never activated
// is forgotten, and one that nobody uses or refreshes.
inline constexpr Duration kSwitchConfirm = 2ms;
inline constexpr Duration kSwitchOrphan = 2s;
// ... the least silence that a switch takes for overdue feedback: a process may be kept from its
// core for a few milliseconds, and NICs wait for 67 ms and more.
inline constexpr Duration kSwitchFeedback = 4ms;
inline constexpr Duration kSwitchRest = 5s;
inline constexpr Duration kSwitchPending = 5s;
inline constexpr Duration kSwitchAge = 10min;
// ... and a newcomer that waits for the end of a turn whose source is silent is told an error.
inline constexpr Duration kSwitchGate = 10s;
// Between two HELLOs on a trunk; so many in a row without an answer: it is dark.
inline constexpr Duration kHello = 25ms;
inline constexpr unsigned kHellosMissed = 8;
// Between two congestion notifications of one connection, by NICs. Switches count them over a time
// that outlasts the burst of a sender that begins at full rate, and the queue that one cut shortens.
inline constexpr Duration kCnpGap = 50us;
inline constexpr Duration kSwitchCnpWindow = 25ms;

// Between a question and what the leader does: its look, the switches' answer, the next look.
inline constexpr Duration kLeaderActs = kLook + kAskAgain;
// From the moment a member falls silent until its leader has had it evicted.
inline constexpr Duration kLeaderEvicts = kSenderAsks + kLeaderActs + kEvict + kLongestRetry;

// Whoever is silent between two repeats is not dead.
static_assert(kEvict > kSourceRepeats);
// Nobody gives up what the leader can still save: it first evicts who is silent, and a leader that
// is gone is first taken out by its switch, then the group is ended.
static_assert(kSenderGivesUp > kLeaderEvicts);
static_assert(kSenderGivesUp > 2 * kSwitchOrphan);
// A member that waits is not forgotten between two of its questions, and is answered before it
// asks for the last time.
static_assert(kSenderAsks + kLook <= kAskerTimeLimit);
static_assert(kReceiverAsksAgain + kLook <= kAskerTimeLimit);
// A leader that was stopped for a moment is not gone.
static_assert(kReceiverGivesUp >= kEvict);
// A leader asks more often than a switch that lost two of three REFRESHs forgets the group.
static_assert(3 * kRefresh < kSwitchAge);
// A receiver that heard none of several INSTALLs has lost its sender; so has a switch.
static_assert(4 * kInstallAgain < kReceiverGivesUp && kReceiverGivesUp < kSwitchAge);
// A switch that tells receivers that their sender is gone is believed.
static_assert(kSenderLives < kSwitchOrphan);
// A switch that was restarted knows the sender group again before anybody is taken for silent.
static_assert(kInstallAgain + kLongestRetry < kEvict);
// A registration that takes its time is not forgotten between two repeats, lost ones among them.
static_assert(kSwitchPending > kLeastPending);
// A host draws no address that a switch still refuses.
static_assert(kAddressRest > kSwitchRest);
// A leader does not repeat for members that switches only keep back, be there three on the way.
static_assert(3 * kSwitchConfirm < kFirstRetry);
// Retries fit into what they are retried for.
static_assert(4 * kLongestRetry < kRegister);

}  // namespace cepheus::wire::times
