// Configuration of one switch of a fabric at its start: ports, routes, limits and rules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/rules.h"
#include "net/shared_buffer.h"
#include "wire/mrp.h"
#include "wire/mrp_key.h"
#include "wire/times.h"
#include "wire/types.h"

namespace cepheus::net {

using wire::Duration;
using wire::Ipv4;
using wire::PortId;

enum class PortKind : std::uint8_t { kHost, kSwitch };

struct PortConfig {
  PortKind kind = PortKind::kHost;
  std::string name;                // "h0", "leaf1": name in the topology file of the neighbour
  Ipv4 host;                       // kHost: the only source address accepted from this port
  Ipv4 peer;                       // kSwitch: the neighbour's own address
  wire::Mac peer_mac;              // destination MAC of frames that leave here
  std::uint32_t mtu = 4096 + 128;  // largest frame, bytes from Ethernet header to ICRC
  // Packets that the ring before a network interface holds without a loss; 0: no such ring.
  std::uint32_t data_slots = 0;
  // ... that the queue before its link holds; 0: no limit is known.
  std::uint32_t queue_frames = 0;
  // Packets that each source may have under way to the ring of an emulated host; 0: no such ring.
  std::uint32_t ring_window = 0;

  // Payload bytes of the longest data packet that fits; 0: not even the shortest path MTU does.
  std::uint16_t path_mtu() const {
    return wire::path_mtu_within(mtu - std::min(mtu, wire::kDataOverhead));
  }
  // The smaller one of both that are known.
  std::uint32_t most_waiting() const { return wire::least_known(data_slots, queue_frames); }
};

// The switches that branch sender groups' data (docs/protocol.md): all, those with hosts, none.
enum class SenderGroups : std::uint8_t { kEverywhere, kRacks, kOff };

// Route to the hosts at another switch, their attachment switch.
struct Route {
  Ipv4 attachment;            // its address
  std::vector<PortId> ports;  // of equal cost
};
// The attachment switch of each host of a fabric: one table for all its switches.
using Attachments = std::unordered_map<Ipv4, Ipv4>;

struct SwitchConfig {
  std::string name = "s0";
  Ipv4 address;  // its own: source of REJECTs; no host has it
  wire::Mac mac;
  std::vector<PortConfig> ports;                        // PortId = index
  std::vector<Route> routes;                            // none for hosts on its own ports
  std::shared_ptr<const Attachments> attachments;       // null: all hosts are on its own ports
  wire::Ipv4Prefix mcst_pool = wire::kDefaultMcstPool;  // destinations that are groups
  std::uint16_t mrp_port = wire::kDefaultMrpUdpPort;
  std::shared_ptr<const wire::MrpKey> mrp_key;  // null: registration is not authenticated
  std::uint32_t max_groups = 1024;              // table space; 0 refuses every registration
  std::uint32_t max_groups_per_host = 256;      // table space for groups that one host leads
  std::uint32_t register_rate = 1000;           // new groups a second that a host may register
  std::uint32_t probe_rate = 1000;              // PROBEs a second of a host; 0: no answer
  std::uint32_t max_paths = 4096;               // per group, hosts and trunks
  std::size_t reduction_memory = std::size_t{256} << 20;  // bytes, of all reduction groups
  std::uint32_t data_window = 8192;  // a data PSN further than this beyond `sent` is dropped
  std::uint32_t max_held =
      64;  // first packets of a newcomer kept by reference per group; 0: RNR instead
  std::uint8_t gate_rnr_timer = 1;  // RNR timer code of the gate's answers (1 = 10 us)
  // Relations between these times: net/time_settings.h.
  Duration age = wire::times::kSwitchAge;  // a table without any packet or refresh is deleted
  // ... and one that was never activated, without a REGISTER or REFRESH.
  Duration pending_age = wire::times::kSwitchPending;
  // ... and one with its leader's port down: after this time the leader is evicted, after the same
  // time again the group ends.
  Duration orphan_age = wire::times::kSwitchOrphan;
  // A REMOVE in a sender's name is stale if an INSTALL is younger than this. An INSTALL so soon after
  // the switch's start may be from before it. Not in a topology's file: hosts have the same limit.
  Duration sender_lives = wire::times::kSenderLives;
  // A newcomer that has waited this long for the end of a silent source's turn gets an error.
  Duration gate_age = wire::times::kSwitchGate;
  // After this time a switch confirms for the members that have confirmed, without the others
  // behind it. The sum over a few switches in a row stays below a leader's first repeat, which then
  // names the missing members only.
  Duration confirm_wait = wire::times::kSwitchConfirm;
  // Feedback is overdue after two round trips and this time, or four deviations, which may be longer.
  Duration feedback_wait{0};
  // A member of a reduction group that others wait for is probed once in this time. Not in a
  // topology's file: hosts have no time that depends on it.
  Duration reduction_probe = std::chrono::seconds(1);
  // Between two HELLOs on each trunk. A trunk is dark after kHellosMissed of these times without
  // any packet from the far end. 0: no HELLOs, so only cables that are known to be cut are down.
  Duration hello = wire::times::kHello;
  // Over which CNPs are counted (Rules::cnp_policy): at least, or exactly, this time.
  Duration cnp_window = wire::times::kSwitchCnpWindow;
  Duration rest = wire::times::kSwitchRest;  // tombstone: time for which a freed McstID is silent
  std::uint32_t max_tombstones = 4096;       // the oldest is deleted beyond this number
  // Data packets of all sources together that a one-armed box holds before replication without a
  // loss; 0: it is no such box. Their copies have as many slots as they need.
  std::uint32_t data_slots = 0;
  // Check the ICRC of group packets, because they change the switch's state.
  bool check_icrc = true;
  SenderGroups sender_groups = SenderGroups::kEverywhere;
  BufferConfig buffer;  // for lossless links
  Rules rules;

  // Adopts settings of a changed configuration in a running switch, without touching its groups:
  // limits for later packets, ages, and the CNP policy of groups that register later.
  void take_settings(const SwitchConfig& next) {
    max_groups = next.max_groups;
    max_groups_per_host = next.max_groups_per_host;
    register_rate = next.register_rate;
    probe_rate = next.probe_rate;
    max_paths = next.max_paths;
    reduction_memory = next.reduction_memory;
    age = next.age;
    pending_age = next.pending_age;
    orphan_age = next.orphan_age;
    gate_age = next.gate_age;
    feedback_wait = next.feedback_wait;
    cnp_window = next.cnp_window;
    rules.cnp_policy = next.rules.cnp_policy;
  }
};

}  // namespace cepheus::net
