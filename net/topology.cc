// plan(): checks, then addresses of the switches in 10.255.0.0/16, the key, ports, and routes.
// Hosts' ports come first, then trunks', in the file's order. Routes name every port on a shortest
// path, by one breadth-first search from each switch that has hosts.
//
// Refused: a key that other users can read or write, and more switches than the block has free
// addresses. Seeds of links depend only on the topology's seed and on their place.
#include "net/topology.h"

#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "net/topology_check.h"
#include "wire/mrp.h"
#include "wire/splitmix.h"

namespace cepheus::net {
namespace {

constexpr wire::Ipv4Prefix kSwitchAddresses{Ipv4(10, 255, 0, 0), 16};

// One address per switch that no host and no group has; fewer if the block is too small.
std::vector<Ipv4> switch_addresses(const Topology& t) {
  std::unordered_set<Ipv4> taken;
  for (const HostSpec& host : t.hosts) taken.insert(host.address);
  std::vector<Ipv4> addresses;
  for (std::uint32_t n = 1; n < kSwitchAddresses.size() && addresses.size() < t.switches.size();
       ++n) {
    const Ipv4 address(kSwitchAddresses.base.value() + n);
    if (!taken.contains(address) && !t.mcst_pool.contains(address)) addresses.push_back(address);
  }
  return addresses;
}

constexpr std::size_t kFar = std::numeric_limits<std::size_t>::max();

// Trunks on the shortest path from each switch to `target`.
std::vector<std::size_t> hops_to(std::size_t target,
                                 const std::vector<std::vector<PortEnd>>& ends) {
  std::vector<std::size_t> hops(ends.size(), kFar);
  std::vector<std::size_t> queue{target};
  hops[target] = 0;
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::size_t at = queue[head];
    for (const PortEnd& end : ends[at]) {
      if (end.kind != PortKind::kSwitch || hops[end.peer_switch] != kFar) continue;
      hops[end.peer_switch] = hops[at] + 1;
      queue.push_back(end.peer_switch);
    }
  }
  return hops;
}

// Frames of the largest size that the queue before a link holds. 0: it has no limit of ours. A link
// without a rate has no queue, a lossless one pauses its senders.
std::uint32_t queue_frames(const LinkConfig& link, std::uint32_t frame_bytes) {
  if (link.rate.is_unlimited() || link.pfc.on) return 0;
  const wire::Bytes frames = std::max<wire::Bytes>(1, link.queue_bytes / frame_bytes);
  return frames <= wire::MrpPath::kWidestWindow ? static_cast<std::uint32_t>(frames) : 0;
}

class Planner {
 public:
  Planner(const Topology& t, std::vector<Ipv4> addresses, std::shared_ptr<const wire::MrpKey> key)
      : t_(t), addresses_(std::move(addresses)), key_(std::move(key)) {}

  Topology::Plan make() {
    start_configs();
    add_host_ports();
    add_trunk_ports();
    add_routes();
    return std::move(plan_);
  }

 private:
  void start_configs() {
    for (std::size_t i = 0; i < t_.switches.size(); ++i) {
      SwitchConfig config = t_.switches[i].config;
      config.name = t_.switches[i].name;
      config.address = addresses_[i];
      config.mac = wire::mac_for(addresses_[i]);
      config.mcst_pool = t_.mcst_pool;
      config.mrp_port = t_.mrp_port;
      config.hello = t_.hello;
      config.mrp_key = key_;
      config.ports.clear();
      config.routes.clear();
      plan_.configs.push_back(std::move(config));
    }
    plan_.ends.resize(t_.switches.size());
  }

  PortId add_port(std::size_t at, PortConfig port, const PortEnd& end, const LinkConfig& out) {
    port.kind = end.kind;
    port.mtu = largest_frame(mtu_of(out, t_.mtu));
    port.queue_frames = queue_frames(out, port.mtu);
    plan_.configs[at].ports.push_back(std::move(port));
    plan_.ends[at].push_back(end);
    return PortId(static_cast<std::uint16_t>(plan_.ends[at].size() - 1));
  }

  void add_host_ports() {
    for (std::size_t i = 0; i < t_.hosts.size(); ++i) {
      const HostSpec& host = t_.hosts[i];
      PortConfig port;
      port.name = host.name;
      port.host = host.address;
      port.peer_mac = wire::mac_for(host.address);
      PortEnd end;
      end.kind = PortKind::kHost;
      end.host = i;
      add_port(host.switch_index, std::move(port), end, host.down);
    }
  }

  // "s1", and "s1#2" for the second trunk to the same neighbour.
  std::string trunk_port_name(std::size_t at, std::size_t peer) const {
    const auto earlier = std::ranges::count_if(plan_.ends[at], [peer](const PortEnd& end) {
      return end.kind == PortKind::kSwitch && end.peer_switch == peer;
    });
    const std::string& name = t_.switches[peer].name;
    return earlier == 0 ? name : name + "#" + std::to_string(earlier + 1);
  }

  PortId add_trunk_port(std::size_t at, std::size_t peer, std::size_t trunk,
                        const LinkConfig& out) {
    PortConfig port;
    port.name = trunk_port_name(at, peer);
    port.peer_mac = wire::mac_for(addresses_[peer]);
    port.peer = addresses_[peer];
    PortEnd end;
    end.kind = PortKind::kSwitch;
    end.peer_switch = peer;
    end.trunk = trunk;
    return add_port(at, std::move(port), end, out);
  }

  void add_trunk_ports() {
    for (std::size_t i = 0; i < t_.trunks.size(); ++i) {
      const TrunkSpec& trunk = t_.trunks[i];
      const PortId a_port = add_trunk_port(trunk.a, trunk.b, i, trunk.ab);
      const PortId b_port = add_trunk_port(trunk.b, trunk.a, i, trunk.ba);
      plan_.ends[trunk.a][a_port.value()].peer_port = b_port;
      plan_.ends[trunk.b][b_port.value()].peer_port = a_port;
    }
  }

  // Every port on some shortest path; one search per switch that has hosts.
  void add_routes() {
    auto attachments = std::make_shared<Attachments>();
    std::vector<bool> has_hosts(t_.switches.size());
    for (const HostSpec& host : t_.hosts) {
      has_hosts[host.switch_index] = true;
      attachments->emplace(host.address, addresses_[host.switch_index]);
    }
    for (SwitchConfig& config : plan_.configs) config.attachments = attachments;
    for (std::size_t target = 0; target < has_hosts.size(); ++target) {
      if (!has_hosts[target]) continue;
      const std::vector<std::size_t> hops = hops_to(target, plan_.ends);
      for (std::size_t at = 0; at < hops.size(); ++at) {
        if (at == target) continue;
        Route route;
        route.attachment = addresses_[target];
        for (std::size_t p = 0; p < plan_.ends[at].size(); ++p) {
          const PortEnd& end = plan_.ends[at][p];
          if (end.kind == PortKind::kSwitch && hops[end.peer_switch] + 1 == hops[at]) {
            route.ports.push_back(PortId(static_cast<std::uint16_t>(p)));
          }
        }
        plan_.configs[at].routes.push_back(std::move(route));
      }
    }
  }

  const Topology& t_;
  const std::vector<Ipv4> addresses_;
  const std::shared_ptr<const wire::MrpKey> key_;
  Topology::Plan plan_;
};

}  // namespace

wire::BitRate Topology::slowest_rate() const {
  wire::BitRate slowest;
  const auto look_at = [&](const LinkConfig& link) {
    if (link.rate.is_unlimited()) return;
    if (slowest.is_unlimited() || link.rate.bits_per_second < slowest.bits_per_second) {
      slowest = link.rate;
    }
  };
  for (const HostSpec& host : hosts) {
    look_at(host.up);
    look_at(host.down);
  }
  for (const TrunkSpec& trunk : trunks) {
    look_at(trunk.ab);
    look_at(trunk.ba);
  }
  return slowest;
}

void Topology::assign_link_seeds() {
  std::uint64_t direction = 0;
  const auto next = [&] { return wire::splitmix(wire::splitmix(seed) + direction++); };
  for (HostSpec& host : hosts) {
    host.up.seed = next();
    host.down.seed = next();
  }
  for (TrunkSpec& trunk : trunks) {
    trunk.ab.seed = next();
    trunk.ba.seed = next();
  }
}

namespace {

// A user that can read the key can register groups.
wire::Result<wire::MrpKey> read_key(const std::string& path) {
  struct stat there {};
  if (stat(path.c_str(), &there) == 0 && (there.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
    return wire::invalid("key_file: other users can read or write " + path + "; run chmod 600 " +
                         path);
  }
  return wire::MrpKey::read(
      path, "key_file: can't read " + path + "; make it with `openssl rand -hex 32`");
}

}  // namespace

wire::Result<Topology::Plan> Topology::plan() const {
  if (const auto problem = find_problem(*this)) {
    return wire::invalid("topology: " + problem->text);
  }
  std::vector<Ipv4> addresses = switch_addresses(*this);
  if (addresses.size() < switches.size()) {
    return wire::invalid("topology: no address left in 10.255.0.0/16 for switch '" +
                         switches[addresses.size()].name +
                         "'; keep hosts and mcst_pool out of that block");
  }
  std::shared_ptr<const wire::MrpKey> key;
  if (!key_file.empty()) {
    auto read = read_key(key_file);
    if (!read) return tl::unexpected(read.error());
    key = std::make_shared<const wire::MrpKey>(std::move(*read));
  }
  return Planner(*this, std::move(addresses), std::move(key)).make();
}

}  // namespace cepheus::net
