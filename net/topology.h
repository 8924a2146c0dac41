// A fabric's topology file (TOML): hosts, switches, links with rate, delay, loss and MTU.
//
//   [fabric]
//   mtu = 4096                # path MTU in bytes, payload of one packet
//   icrc = "deferred"         # or "always": made by the sender, checked by the receiver
//   seed = 1                  # of every link's faults
//   mcst_pool = "198.18.0.0/15"   # destinations that are groups
//   mrp_port = 18516          # UDP port of registration
//   hello = "25ms"            # between switches; eight without an answer: the trunk is dark. "0ns":
//                             # none
//   one_armed = "ens1"        # all hosts without an interface of their own are behind this one of
//                             # ours (switch-emulator/ports/one_armed_interface.h); one switch
//   one_armed_dpdk = "0000:03:00.0"   # DPDK moves its frames: this device (ports/dpdk_driver.h)
//
//   [link]                    # defaults for every link
//   rate = "10Gbps"           # absent: unlimited
//   delay = "2us"
//   loss = 0.0                # also: duplicate, reorder, reorder_by = "50us", corrupt, queue =
//   "4MiB"
//   ecn = { kmin = "50KB", kmax = "500KB", pmax = 0.01 }   # marks of the switch's queue before the
//                             # link; true: these, by the rate
//   pfc = true                # data on it is lossless: the switch pauses who sends more than it has
//                             # room for; also { headroom = "40KB" }
//
//   [[switch]]                # without any there is one, "s0"
//   name = "s0"
//   max_groups = 1024         # also: max_groups_per_host, register_rate (a second), max_paths,
//                             # data_window, max_held, age, pending_age, orphan_age, gate_age,
//                             # rest, confirm_wait, source_change = "rebase"|"host-sync",
//                             # cnp_policy = "all"|"worst-path"|"tmcf", cnp_window,
//                             # write_mode = "regions"|"per-request"|"same-key"|"none",
//                             # sender_groups = "everywhere"|"racks"|"off", buffer = "32MiB",
//                             # buffer_share = 0.125, buffer_reserve = "4KiB", group_halt = true
//
//   [[host]]
//   name = "h0"
//   address = "10.0.0.1"
//   switch = "s0"             # may be left out with one switch
//   link = { rate = "1Gbps", delay = "100us", loss = 0.01 }
//   interface = "p0"          # this host is behind a network interface of ours, not a client over
//                             # shared memory; needs CAP_NET_RAW
//   mac = "02:00:00:00:00:01" # with one_armed: only frames from this MAC address are the host's;
//                             # "any": all with its address (switch-emulator/ports/one_armed_port.h)
//
//   [[trunk]]                 # between switches; the graph must be a tree or have equal-cost paths
//   between = ["s0", "s1"]
//   link = { rate = "40Gbps" }
//
// Quantities carry their unit (net/units.h). Names are unique over hosts and switches.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "net/link.h"
#include "net/switch_config.h"
#include "wire/result.h"

namespace cepheus::net {

// A frame is at most this much longer than its payload: Ethernet, IPv4, UDP, BTH, extension
// headers, pad, ICRC.
inline constexpr std::uint32_t kFrameOverhead = 128;
// Whatever the path MTU is, links carry what Ethernet does: registration needs it.
inline constexpr std::uint32_t kEthernetFrame = 1514;
constexpr std::uint32_t largest_frame(std::uint32_t mtu) {
  return std::max(mtu + kFrameOverhead, kEthernetFrame);
}

struct HostSpec {
  std::string name;
  Ipv4 address;
  std::size_t switch_index = 0;
  std::string
      interface;  // network interface towards it; empty: Topology::one_armed's, or, if there
                  // is none, a client over shared memory
  // Behind the one-armed interface: whose frames are the host's; neither: the switch finds out.
  std::optional<wire::Mac> mac;
  bool any_mac = false;
  LinkConfig up, down;  // host to switch, switch to host; same parameters, different seeds
};
struct SwitchSpec {
  std::string name;
  SwitchConfig config;  // limits, ages, rules; ports and routes are filled in by switch_configs()
};
struct TrunkSpec {
  std::size_t a = 0, b = 0;  // switch indices
  LinkConfig ab, ba;
};

// What a port of a switch leads to.
struct PortEnd {
  PortKind kind = PortKind::kHost;
  std::size_t host = 0;         // kHost: index into hosts
  std::size_t peer_switch = 0;  // kSwitch
  PortId peer_port;
  std::size_t trunk = 0;
};

struct Topology {
  std::uint32_t mtu = 4096;
  bool icrc_always = false;
  std::uint64_t seed = 1;
  wire::Ipv4Prefix mcst_pool = wire::kDefaultMcstPool;
  std::uint16_t mrp_port = wire::kDefaultMrpUdpPort;
  // Between two HELLOs of neighbouring switches (SwitchConfig::hello).
  wire::Duration hello = SwitchConfig().hello;
  std::string one_armed;       // network interface towards all hosts that have none; empty: no such
  std::string one_armed_dpdk;  // DPDK device that moves its frames; empty: a packet socket does
  std::string key_file;        // authenticates registration; empty: nobody is asked
  std::vector<std::string>
      users;  // names or numbers: who may attach and look, beside the fabric's own
  std::vector<HostSpec> hosts;
  std::vector<SwitchSpec> switches;
  std::vector<TrunkSpec> trunks;

  // Errors name the file, line and what to write instead.
  static wire::Result<Topology> from_file(const std::string& path);
  static wire::Result<Topology> from_toml(const std::string& text,
                                          const std::string& source_name = "topology");
  // n hosts h0.. with addresses 10.0.0.1.. on one switch s0.
  static Topology star(std::size_t n, const LinkConfig& link = {});
  // Gives each direction of each link its own seed, drawn from `seed`. star() and from_toml() have
  // done so.
  void assign_link_seeds();
  // The rate of the slowest link.
  wire::BitRate slowest_rate() const;
  // The same as a TOML file; from_toml(to_toml()) is the identity on what a file can say (a link's
  // two directions differ in their seeds only, Rules in their policies only).
  std::string to_toml() const;

  // One SwitchConfig per switch with ports, MACs, addresses and equal-cost shortest-path routes,
  // and what each port leads to (same indices). Hosts come first among a switch's ports, in the
  // file's order.
  struct Plan {
    std::vector<SwitchConfig> configs;
    std::vector<std::vector<PortEnd>> ends;
  };
  wire::Result<Plan> plan() const;
};

}  // namespace cepheus::net
