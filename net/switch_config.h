// What one switch of a fabric is told when it starts: its ports, routes, limits and rules.
#pragma once

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
  std::string name;                // "h0", "leaf1": as the topology file calls what is behind it
  Ipv4 host;                       // kHost: the only source address accepted from this port
  Ipv4 peer;                       // kSwitch: the neighbour's own address
  wire::Mac peer_mac;              // destination MAC of what leaves here
  std::uint32_t mtu = 4096 + 128;  // largest frame, bytes from Ethernet header to ICRC
};

// Which switches branch sender groups' data (docs/protocol.md): all, those that hosts are at, none.
enum class SenderGroups : std::uint8_t { kEverywhere, kRacks, kOff };

// To the hosts at another switch, their leaf.
struct Route {
  Ipv4 leaf;                  // its address
  std::vector<PortId> ports;  // equal cost
};
// The leaf of each host of a fabric: one table for all its switches.
using LeafOfHost = std::unordered_map<Ipv4, Ipv4>;

struct SwitchConfig {
  std::string name = "s0";
  Ipv4 address;  // its own: source of REJECTs; no host has it
  wire::Mac mac;
  std::vector<PortConfig> ports;                        // PortId = index
  std::vector<Route> routes;                            // hosts on its own ports need none
  std::shared_ptr<const LeafOfHost> leaf_of_host;       // null: there are no hosts but those
  wire::Ipv4Prefix mcst_pool = wire::kDefaultMcstPool;  // destinations that are groups
  std::uint16_t mrp_port = wire::kDefaultMrpUdpPort;
  std::shared_ptr<const wire::MrpKey> mrp_key;  // null: registration is not authenticated
  std::uint32_t max_groups = 1024;              // table space; 0 refuses every registration
  std::uint32_t max_groups_per_host = 256;      // ... of which one host may lead so many
  std::uint32_t register_rate = 1000;           // new groups a second that a host may ask for
  std::uint32_t max_paths = 4096;               // per group, hosts and trunks
  std::uint32_t data_window = 8192;  // a data PSN further than this beyond `sent` is dropped
  std::uint32_t max_held =
      64;  // first packets of a newcomer kept by reference per group; 0: RNR instead
  std::uint8_t gate_rnr_timer = 1;  // code asked for when the gate answers RNR (1 = 10 us)
  // What these depend on: net/time_settings.h.
  Duration age = wire::times::kSwitchAge;  // a table without any packet or refresh is forgotten
  // ... and one that was never activated, without a REGISTER or REFRESH.
  Duration pending_age = wire::times::kSwitchPending;
  // ... and one whose leader's port is down: after this time the leader is out of the group, after
  // the same time again the group ends.
  Duration orphan_age = wire::times::kSwitchOrphan;
  // A newcomer that has waited so long for the end of a turn whose source is silent is told an
  // error.
  Duration gate_age = wire::times::kSwitchGate;
  // A switch confirms for those that have, if others behind it have not yet. Over a few switches in
  // a row this stays below a leader's first repeat, which is then for the missing only.
  Duration confirm_wait = wire::times::kSwitchConfirm;
  // Feedback is never overdue sooner, however short the measured round trips. 0: it never is.
  Duration feedback_wait = wire::times::kSwitchFeedback;
  // Between two HELLOs on each trunk; a trunk is dark after kHellosMissed in a row without anything
  // from the other end. 0: none are sent, and only cables that are known to be cut are down.
  Duration hello = wire::times::kHello;
  // What CNPs are counted over (Rules::cnp_policy): at least so long, or just so long.
  Duration cnp_window = wire::times::kSwitchCnpWindow;
  Duration rest = wire::times::kSwitchRest;  // tombstone: how long a freed McstID answers nothing
  std::uint32_t max_tombstones = 4096;       // beyond it the oldest gives way
  bool check_icrc =
      true;  // of group packets that carry one: what they say becomes state of the switch
  SenderGroups sender_groups = SenderGroups::kEverywhere;
  BufferConfig buffer;  // where links are lossless
  Rules rules;

  // What a running switch takes of a changed configuration, its groups untouched: limits for what
  // comes to it from then on, ages, and the CNP policy of groups that register from then on.
  void take_settings(const SwitchConfig& next) {
    max_groups = next.max_groups;
    max_groups_per_host = next.max_groups_per_host;
    register_rate = next.register_rate;
    max_paths = next.max_paths;
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
