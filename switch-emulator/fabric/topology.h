// A fabric's topology file (TOML): hosts, switches, links with rate, delay, loss and MTU.
//
//   [fabric]
//   mtu = 4096                # path MTU in bytes, payload of one packet
//   icrc = "deferred"         # or "always": make and check it on every hop
//
//   [link]                    # defaults for every link
//   rate = "10Gbps"           # absent: unlimited
//   delay = "2us"
//   loss = 0.0
//
//   [[switch]]
//   name = "s0"
//   max_groups = 1024
//
//   [[host]]
//   name = "h0"
//   address = "10.0.0.1"
//   switch = "s0"             # may be left out with one switch
//   link = { rate = "1Gbps", delay = "100us", loss = 0.01 }
//
//   [[trunk]]                 # between switches; the graph must be a tree or have equal-cost paths
//   between = ["s0", "s1"]
//   link = { rate = "40Gbps" }
#pragma once

#include <string>
#include <vector>

#include "libmcast/wire/result.h"
#include "switch-emulator/engine/switch.h"
#include "switch-emulator/fabric/link.h"

namespace cepheus::fabric {

struct HostSpec {
  std::string name;
  Ipv4 address;
  std::size_t switch_index = 0;
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
  std::size_t host = 0;          // kHost: index into hosts
  std::size_t peer_switch = 0;   // kSwitch
  PortId peer_port;
  std::size_t trunk = 0;
};

struct Topology {
  std::uint32_t mtu = 4096;
  bool icrc_always = false;
  std::vector<HostSpec> hosts;
  std::vector<SwitchSpec> switches;
  std::vector<TrunkSpec> trunks;

  // Errors name the file, line and what to write instead.
  static wire::Result<Topology> from_file(const std::string& path);
  static wire::Result<Topology> from_toml(const std::string& text, const std::string& source_name = "topology");
  // n hosts h0.. with addresses 10.0.0.1.. on one switch s0.
  static Topology star(std::size_t n, const LinkConfig& link = {});
  // The same as a TOML file; from_toml(to_toml()) is the identity.
  std::string to_toml() const;

  // One SwitchConfig per switch with ports, MACs, addresses and equal-cost shortest-path routes, and what each port
  // leads to (same indices). Hosts come first among a switch's ports, in the file's order.
  struct Plan {
    std::vector<SwitchConfig> configs;
    std::vector<std::vector<PortEnd>> ends;
  };
  wire::Result<Plan> plan() const;
};

}  // namespace cepheus::fabric
