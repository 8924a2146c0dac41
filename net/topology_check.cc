// Checks go from the fabric to switches, hosts, trunks, buffers and connections; the first problem
// is returned, with its remedy. Later checks rely on earlier ones, such as buffers on valid
// indices.
//
// Bounds: names of 63 characters, 65534 ports a switch, delays of an hour. One interface leads to
// one host, and a one-armed fabric has one switch. All switches with hosts must change sources by
// the same method.
#include "net/topology_check.h"

#include <net/if.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "net/buffer_plan.h"
#include "net/queue_settings.h"
#include "net/time_settings.h"
#include "net/units.h"

namespace cepheus::net {
namespace {

using Of = TopologyProblem::Of;
using MaybeProblem = std::optional<TopologyProblem>;

constexpr wire::Duration kMostDelay =
    std::chrono::minutes(60);                  // sums of a few stay far below 2^63 ns
constexpr std::size_t kMaxPorts = 0xFFFF;      // PortId 0xffff means "none"
constexpr std::uint64_t kMaxSeed = INT64_MAX;  // TOML's integers are signed

// Not named quoted(): beside std::quoted a call would be ambiguous.
std::string in_quotes(const std::string& name) { return "'" + name + "'"; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A name starts with a letter, so that it is neither an address nor a "#3"
// (HostPort::Options::host).
bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameLength && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
         });
}

class Names {
 public:
  // Why `name` can't be used, or nothing.
  std::string take(const std::string& name) {
    if (!is_name(name)) {
      return "name " + in_quotes(name) +
             " starts with no letter, or holds more than letters, digits, '-', '_' and '.' (at "
             "most 63)";
    }
    if (!taken_.insert(name).second) {
      return "name " + in_quotes(name) +
             " is taken already; hosts and switches need different names";
    }
    return {};
  }

 private:
  std::unordered_set<std::string> taken_;
};

class Interfaces {
 public:
  explicit Interfaces(const std::string& one_armed) {
    if (!one_armed.empty()) owners_.emplace(one_armed, "all hosts without one");
  }
  static bool is_name(const std::string& interface) {
    return interface.size() < IFNAMSIZ && interface.find_first_of("/ \t\n") == std::string::npos;
  }
  // Why `host` can't be behind `interface`, or nothing.
  std::string take(const std::string& interface, const std::string& host) {
    if (interface.empty()) return {};
    if (!is_name(interface)) {
      return "interface " + in_quotes(interface) +
             " is not an interface's name; ip link shows them";
    }
    const auto [owner, fresh] = owners_.emplace(interface, host);
    if (fresh) return {};
    return "interface " + in_quotes(interface) + " leads to " + in_quotes(owner->second) +
           " already; each host needs its own";
  }

 private:
  std::unordered_map<std::string, std::string> owners_;
};

constexpr const char* kNoPathMtu = " is not a path MTU; write 256, 512, 1024, 2048 or 4096";

std::string problem_of_link(const LinkConfig& link, std::uint32_t mtu) {
  for (const auto& [key, p] :
       {std::pair("loss", link.loss), std::pair("duplicate", link.duplicate),
        std::pair("reorder", link.reorder), std::pair("corrupt", link.corrupt)}) {
    if (!(p >= 0 && p <= 1)) {
      return std::string(key) + " = " + number_to_text(p) +
             " is not a probability; write a number from 0.0 to 1.0";
    }
  }
  const std::string link_mtu = "mtu = " + std::to_string(link.mtu) + " of a link";
  if (link.mtu != 0 && !wire::is_path_mtu(link.mtu)) return link_mtu + kNoPathMtu;
  if (link.mtu > mtu) {
    const std::string fabrics = std::to_string(mtu);
    return link_mtu + " is larger than the fabric's " + fabrics +
           "; write at most mtu = " + fabrics + ", or a larger mtu in [fabric]";
  }
  if (link.delay.count() < 0 || link.reorder_by.count() < 0) return "delays can't be negative";
  if (std::max(link.delay, link.reorder_by) > kMostDelay) {
    return "a delay of more than " + to_text(kMostDelay) + "; write at most delay = \"" +
           to_text(kMostDelay) + "\"";
  }
  if (link.queue_bytes < largest_frame(mtu)) {
    return "a queue of " + bytes_to_text(link.queue_bytes) + " holds no frame; write queue = \"" +
           std::to_string(largest_frame(mtu)) + "B\" or more";
  }
  if (std::string text = problem_of(link.ecn, link.rate, link.queue_bytes); !text.empty()) {
    return text;
  }
  return problem_of(link.pfc, link.rate);
}

MaybeProblem fabric_problem(const Topology& t) {
  const auto problem = [](std::string text) {
    return TopologyProblem{Of::kFabric, 0, std::move(text)};
  };
  if (!wire::is_path_mtu(t.mtu)) {
    return problem("mtu = " + std::to_string(t.mtu) + kNoPathMtu);
  }
  if (t.seed > kMaxSeed) return problem("seed is larger than " + std::to_string(kMaxSeed));
  if (t.mrp_port == 0 || t.mrp_port == wire::kRoceUdpPort) {
    return problem("mrp_port = " + std::to_string(t.mrp_port) +
                   " can't be used; write a UDP port other than 0 and RoCE's 4791");
  }
  if (std::string text = problem_of_hello(t.hello); !text.empty()) return problem(std::move(text));
  if (!t.mcst_pool.is_unicast()) {
    return problem(
        "mcst_pool holds addresses that hosts treat specially (0/8, 127/8, 224/3); write a unicast "
        "prefix such as \"198.18.0.0/15\"");
  }
  if (!Interfaces::is_name(t.one_armed)) {
    return problem("one_armed = " + in_quotes(t.one_armed) +
                   " is not an interface's name; ip link shows them");
  }
  if (!t.one_armed.empty() && t.switches.size() > 1) {
    return problem("one_armed takes one switch, and there are " +
                   std::to_string(t.switches.size()) +
                   ": hosts behind one interface are all next to it; leave out all but one");
  }
  if (t.switches.empty()) return problem("no switch; add [[switch]] with a name");
  if (t.hosts.empty()) return problem("no host; add [[host]] with a name and an address");
  return std::nullopt;
}

MaybeProblem host_problem(const Topology& t, Names& names) {
  std::unordered_map<Ipv4, std::size_t> owners;
  Interfaces interfaces(t.one_armed);
  for (std::size_t i = 0; i < t.hosts.size(); ++i) {
    const HostSpec& host = t.hosts[i];
    const auto problem = [i](std::string text) {
      return TopologyProblem{Of::kHost, i, std::move(text)};
    };
    if (std::string text = names.take(host.name); !text.empty()) return problem(std::move(text));
    const std::string address = "address " + host.address.to_string();
    if (!host.address.is_unicast()) {
      return problem(address + " is not a host's address; write one such as \"10.0.0." +
                     std::to_string(i + 1) + "\"");
    }
    if (t.mcst_pool.contains(host.address)) {
      return problem(address +
                     " lies in the pool of group addresses; choose one outside mcst_pool");
    }
    if (const auto [owner, fresh] = owners.emplace(host.address, i); !fresh) {
      return problem(address + " belongs to " + in_quotes(t.hosts[owner->second].name) +
                     " already; each host needs its own");
    }
    if (host.switch_index >= t.switches.size()) return problem("its switch does not exist");
    if (std::string text = interfaces.take(host.interface, host.name); !text.empty()) {
      return problem(std::move(text));
    }
    if ((host.mac || host.any_mac) && !host.interface.empty()) {
      return problem("mac is for hosts behind the one-armed interface, and " +
                     in_quotes(host.name) +
                     " has an interface of its own; take one of the two out");
    }
    for (const LinkConfig* link : {&host.up, &host.down}) {
      if (std::string text = problem_of_link(*link, t.mtu); !text.empty()) {
        return problem(std::move(text));
      }
    }
  }
  return std::nullopt;
}

MaybeProblem switch_problem(const Topology& t, Names& names) {
  std::vector<std::size_t> ports(t.switches.size());
  for (const HostSpec& host : t.hosts) {
    if (host.switch_index < ports.size()) ++ports[host.switch_index];
  }
  for (const TrunkSpec& trunk : t.trunks) {
    if (trunk.a < ports.size()) ++ports[trunk.a];
    if (trunk.b < ports.size()) ++ports[trunk.b];
  }
  for (std::size_t i = 0; i < t.switches.size(); ++i) {
    const std::string& name = t.switches[i].name;
    if (std::string text = names.take(name); !text.empty()) {
      return TopologyProblem{Of::kSwitch, i, std::move(text)};
    }
    if (ports[i] >= kMaxPorts) {
      return TopologyProblem{Of::kSwitch, i,
                             in_quotes(name) + " has " + std::to_string(ports[i]) +
                                 " ports, more than 65534; spread its hosts over several switches"};
    }
  }
  return std::nullopt;
}

MaybeProblem trunk_problem(const Topology& t) {
  for (std::size_t i = 0; i < t.trunks.size(); ++i) {
    const TrunkSpec& trunk = t.trunks[i];
    const auto problem = [i](std::string text) {
      return TopologyProblem{Of::kTrunk, i, std::move(text)};
    };
    if (trunk.a >= t.switches.size() || trunk.b >= t.switches.size()) {
      return problem("one of its switches does not exist");
    }
    if (trunk.a == trunk.b) {
      return problem("a trunk joins two different switches, not " +
                     in_quotes(t.switches[trunk.a].name) + " with itself");
    }
    for (const LinkConfig* link : {&trunk.ab, &trunk.ba}) {
      if (std::string text = problem_of_link(*link, t.mtu); !text.empty()) {
        return problem(std::move(text));
      }
    }
  }
  return std::nullopt;
}

// A leader alone at its switch learns the method of the others' switches only.
MaybeProblem method_problem(const Topology& t) {
  const SwitchSpec& first = t.switches[t.hosts.front().switch_index];
  const auto text = [](const SwitchSpec& spec) {
    const bool syncs = spec.config.rules.source_change == SourceChange::kHostSync;
    return syncs ? "\"host-sync\"" : "\"rebase\"";
  };
  for (const HostSpec& host : t.hosts) {
    const SwitchSpec& spec = t.switches[host.switch_index];
    if (spec.config.rules.source_change == first.config.rules.source_change) continue;
    return TopologyProblem{Of::kSwitch, host.switch_index,
                           in_quotes(spec.name) + " has source_change = " + text(spec) + " and " +
                               in_quotes(first.name) + " has " + text(first) +
                               ": members at both could form no group; write the same for all "
                               "switches with hosts"};
  }
  return std::nullopt;
}

MaybeProblem buffer_problem(const Topology& t) {
  const std::vector<BufferPlan> plans = buffer_plans(t);
  for (std::size_t i = 0; i < t.switches.size(); ++i) {
    const bool is_lossless = i < plans.size() && plans[i].has_lossless_ports();
    if (!t.switches[i].config.buffer.group_halt || is_lossless) continue;
    return TopologyProblem{Of::kSwitch, i,
                           "group_halt is for packets of lossless links, and " +
                               in_quotes(t.switches[i].name) +
                               " has none; write pfc = true in [link], or leave group_halt out"};
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].config.bytes >= plans[i].least) continue;
    return TopologyProblem{
        Of::kSwitch, i,
        "buffer = \"" + bytes_to_text(plans[i].config.bytes) +
            "\" is less than the headroom and reserve of the lossless ports of " +
            in_quotes(t.switches[i].name) + " with a few frames; write buffer = \"" +
            bytes_to_text(2 * plans[i].least) + "\", or leave it out"};
  }
  return std::nullopt;
}

MaybeProblem connection_problem(const Topology& t) {
  std::vector<std::vector<std::size_t>> neighbours(t.switches.size());
  for (const TrunkSpec& trunk : t.trunks) {
    neighbours[trunk.a].push_back(trunk.b);
    neighbours[trunk.b].push_back(trunk.a);
  }
  std::vector<bool> reached(t.switches.size());
  std::vector<std::size_t> open{0};
  reached[0] = true;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    for (const std::size_t next : neighbours[at]) {
      if (!reached[next]) open.push_back(next);
      reached[next] = true;
    }
  }
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (!reached[i]) {
      return TopologyProblem{Of::kSwitch, i,
                             in_quotes(t.switches[i].name) + " can't be reached from " +
                                 in_quotes(t.switches[0].name) +
                                 "; join them with a [[trunk]] between = [\"" + t.switches[0].name +
                                 "\", \"" + t.switches[i].name + "\"]"};
    }
  }
  return std::nullopt;
}

}  // namespace

MaybeProblem find_problem(const Topology& topology) {
  Names names;
  if (auto problem = fabric_problem(topology)) return problem;
  if (auto problem = switch_problem(topology, names)) return problem;
  if (auto problem = host_problem(topology, names)) return problem;
  if (auto problem = method_problem(topology)) return problem;
  if (auto problem = trunk_problem(topology)) return problem;
  if (auto problem = buffer_problem(topology)) return problem;
  return connection_problem(topology);
}

}  // namespace cepheus::net
