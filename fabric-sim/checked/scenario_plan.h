// All that a seed determines about one simulated run, as plain values that a test may change before
// the run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric-sim/core/box.h"
#include "fabric-sim/core/random.h"
#include "libmcast/engine/presence.h"
#include "net/topology.h"
#include "nic-emulator/engine/nic.h"

namespace cepheus::sim {

// Live times, shortened in the same proportion.
constexpr wire::Duration kOrphanAge = std::chrono::milliseconds(10);
constexpr wire::Duration kSenderLives = std::chrono::milliseconds(6);

// The faults of every cable: a phase of faults, then one without in which all operations must
// succeed.
struct Faults {
  double loss = 0;  // probabilities per frame and cable
  double duplicate = 0;
  double reorder = 0;
  double corrupt = 0;
  wire::Duration reorder_by{0};  // longest delay of a reordered frame and of a second copy
  wire::Duration begin{0};       // 0: registration is affected as well
  wire::Duration end{0};
};

enum class MessageKind : std::uint8_t { kSend, kWrite, kWriteImm };
struct MessagePlan {
  std::size_t source = 0;  // index into GroupPlan::members
  std::uint32_t bytes = 0;
  MessageKind kind = MessageKind::kSend;
  std::uint32_t offset = 0;  // of a WRITE, in the members' regions
  bool outside = false;      // it ends beyond the region's end, and must be refused
  std::uint64_t jump = 0;    // packets that follow it without being simulated one by one

  bool is_write() const { return kind != MessageKind::kSend; }
  bool has_completion() const { return kind != MessageKind::kWrite; }  // receivers get a completion
};

struct MemberPlan {
  std::size_t host = 0;                 // index into Topology::hosts
  std::uint32_t receives_at_start = 0;  // the other receives are posted late
};

struct GroupPlan {
  wire::McstId id;
  std::uint16_t epoch = 0;
  std::size_t leader = 0;  // index into members
  std::vector<MemberPlan> members;
  std::vector<MessagePlan> messages;  // in the order in which all members know the turns
  std::uint32_t region_bytes = 0;     // of each member, for WRITEs; 0: no region
  bool is_announced = false;          // each WRITE's address comes in a packet before it
  // Rule C1 is kept: a member starts a turn only after it has received all messages of earlier
  // turns. Without it members send at any time, which is an error: operations may fail, but must
  // never falsely succeed.
  bool in_turns = true;
  bool has_one_sender = false;          // a sender group: its leader alone sends
  bool loss_ends = false;               // a group without evictions
  wire::Duration starts{0};             // when the leader registers it
  std::uint16_t first_publication = 0;  // number of the first publication

  // UDP port of its members: each group belongs to its own program on a host.
  std::uint16_t control_port() const {
    return static_cast<std::uint16_t>(40000 + id.value() % 1000);
  }
};

struct TransportPlan {
  static constexpr unsigned kTimeoutDoublings = 6;  // of the NICs' ACK time-outs; as live

  std::uint32_t path_mtu = 256;
  std::uint8_t timeout_code = 7;  // 4.096 us * 2^code
  std::uint8_t min_rnr_timer = 2;
  std::uint32_t receive_slots = 4;  // largest number posted, per member
  wire::Duration late_receive{0};   // longest delay of a receive that is posted late
  wire::Duration turn_pause{0};     // longest delay before a member starts its turn
  wire::Duration least_silence = std::chrono::milliseconds(80);
  wire::Duration late_sync{0};          // longest delay before a member that has sent sets its PSNs
  wire::Duration sync_pause{0};         // longest time that its queue pair needs for it
  mcast::Presence::Pace presence = {};  // for members that wait for data

  wire::Duration ack_timeout() const {  // the first one; it doubles while no answer comes
    return std::chrono::nanoseconds(std::int64_t{4096} << timeout_code);
  }
  // Longer than a source ever waits before it sends again. As live, a member that asks about its
  // group waits for an answer as long as a leader waits for a silent member.
  wire::Duration silence() const {
    return std::max(least_silence, (1 << kTimeoutDoublings) * ack_timeout() * 6 / 5);
  }
};

// fabric-sim/checked/incidents.h
enum class IncidentKind : std::uint8_t {
  kDeath,
  kHostRestart,
  kPause,
  kProgramStall,
  kNicStall,
  kSwitchRestart,
  kForgery,
  kHostileMember
};
struct IncidentPlan {
  IncidentKind kind = IncidentKind::kDeath;
  wire::Duration at{0};
  wire::Duration lasts{0};
  std::size_t host = 0;
  std::size_t at_switch = 0;
  bool noticed = true;  // a death: whether the switch sees the port go down
  // A hostile member: the group, and what it does (reductions/hostile_member.h).
  wire::McstId group{};
  std::uint32_t attacks = 0;
};

// fabric-sim/checked/trunk_cut.h
struct TrunkCutPlan {
  std::vector<std::size_t> trunks;  // none: no cut
  wire::Duration at{0};
  wire::Duration lasts{0};  // 0: for ever
  bool noticed = true;      // whether the switches see it; otherwise the trunk is silent
  bool one_way = false;
};

struct ScenarioPlan {
  std::uint64_t seed = 0;
  net::Topology topology;
  std::vector<rnic::NicConfig> nics;  // one per host
  BoxManners box;                     // of all switches; the default: no boxes
  std::vector<GroupPlan> groups;
  TransportPlan transport;
  Faults faults;
  std::vector<IncidentPlan> incidents;
  TrunkCutPlan cut;
  wire::Duration lasts{0};  // end of the run, for groups without messages
  // Time without faults in which all operations must end.
  wire::Duration recovery{std::chrono::milliseconds(400)};
  // No check waits for groups that a disaster may have ended: later groups have the same members.
  bool has_successors = false;
  // Unregister at once, not after the last packet has arrived.
  bool late_packets_meet_tombstone = false;
  bool reduces = false;  // every group reduces (reductions/reduction_scenario.h)
  std::uint64_t event_budget = 400'000;
  // ... and in each millisecond: HELLOs, complaints, questions and repeats go on while a run waits.
  std::uint64_t events_per_millisecond() const {
    constexpr std::uint64_t kOfAPart = 30;
    return kOfAPart * (topology.hosts.size() + topology.switches.size() + topology.trunks.size());
  }

  // All groups are sender groups, or none.
  bool has_sender_groups() const { return groups.front().has_one_sender; }
};

struct PlanOptions {
  std::optional<std::size_t> switches = {};  // instead of the seed's choice
  bool incidents = false;                    // every seed has one to five
  bool cuts = false;           // every seed has equal-cost paths, and trunks that fail
  bool fabrics = false;        // every seed has equal-cost paths, and up to 512 hosts
  bool far = false;            // every seed has hosts whose delays differ by up to 2 ms
  bool host_sync = false;      // hosts move their PSNs on in every seed
  bool writes = false;         // members write into each other's regions in every seed
  bool per_request = false;    // the same, with every WRITE announced
  bool sender_groups = false;  // every group has one fixed sender
  bool congestion = false;     // queues that mark in every seed, lossless links in most
  bool long_turns = false;     // turns beyond the range of PSN comparisons
  bool reductions = false;     // every group reduces
  // Make of all NICs (nic_profile.h); empty: the seed draws it.
  std::string nic = {};
  net::Rules rules = {};
};

ScenarioPlan make_plan(std::uint64_t seed, const PlanOptions& options = {});

// Faults wait for their phase; the link determines how long they delay a frame.
net::LinkConfig make_link(Random& random, const Faults& faults);
// Times that fit those of simulated hosts, and the gate's limit.
void configure_switch(Random& random, net::SwitchSpec& spec, const net::Rules& rules);

void use_sender_groups(ScenarioPlan& plan);
// A number of no other group; forged packets also use the next number, which no group has.
wire::Qpn virtual_qpn_of(const GroupPlan& group);

}  // namespace cepheus::sim
