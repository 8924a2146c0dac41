// A fabric's topology file (TOML): hosts, switches, links with rate, delay, loss and MTU.
// docs/topology.md has every word of the file.
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
