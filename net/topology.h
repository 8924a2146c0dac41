// A fabric's topology file (TOML): hosts, switches, links with rate, delay, loss and MTU.
// docs/topology.md describes every key.
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
// Links carry Ethernet's MTU whatever the path MTU is, because registration needs it.
inline constexpr std::uint32_t kEthernetFrame = 1514;
constexpr std::uint32_t largest_frame(std::uint32_t mtu) {
  return std::max(mtu + kFrameOverhead, kEthernetFrame);
}

// The largest path MTU of a link in a fabric with this one.
constexpr std::uint32_t mtu_of(const LinkConfig& link, std::uint32_t fabrics) {
  return link.mtu != 0 ? link.mtu : fabrics;
}

struct HostSpec {
  std::string name;
  Ipv4 address;
  std::size_t switch_index = 0;
  // Network interface towards it; empty: Topology::one_armed's, else a client over shared memory.
  std::string interface;
  // Behind the one-armed interface: source of the host's frames; neither: the switch finds it out.
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

// The neighbour at a port of a switch.
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
  std::string one_armed;       // network interface for all hosts without one; empty: no such
  std::string one_armed_dpdk;  // DPDK device for its frames; empty: a packet socket
  std::string key_file;        // authenticates registration; empty: no authentication
  std::vector<std::string>
      users;  // names or numbers of users that may attach and read, beside the fabric's own
  std::vector<HostSpec> hosts;
  std::vector<SwitchSpec> switches;
  std::vector<TrunkSpec> trunks;

  // Errors name the file, the line and the remedy.
  static wire::Result<Topology> from_file(const std::string& path);
  static wire::Result<Topology> from_toml(const std::string& text,
                                          const std::string& source_name = "topology");
  // n hosts h0.. with addresses 10.0.0.1.. on one switch s0.
  static Topology star(std::size_t n, const LinkConfig& link = {});
  // Gives each direction of each link its own seed, drawn from `seed`. star() and from_toml() call
  // it.
  void assign_link_seeds();
  // The rate of the slowest link.
  wire::BitRate slowest_rate() const;
  // The same as a TOML file; from_toml(to_toml()) is the identity on all that a file can express
  // (the two directions of a link differ in their seeds only, Rules in their policies only).
  std::string to_toml() const;

  // One SwitchConfig per switch with ports, MACs, addresses and equal-cost shortest-path routes,
  // and the neighbour of each port (same indices). Hosts come first among a switch's ports, in the
  // file's order.
  struct Plan {
    std::vector<SwitchConfig> configs;
    std::vector<std::vector<PortEnd>> ends;
  };
  wire::Result<Plan> plan() const;
};

}  // namespace cepheus::net
