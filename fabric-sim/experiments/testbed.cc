// HELLOs, ICRCs, checks and traces are turned off; each NIC gets a seed of its own from the run's.
// run_until() looks at its condition every 100 us of virtual time, so a run may go on a little. The
// simulator's budget of events is unlimited here: only the virtual time limit ends a run.
#include "fabric-sim/experiments/testbed.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "fabric-sim/core/random.h"
#include "fabric-sim/experiments/settings.h"
#include "net/shapes.h"
#include "nic-emulator/engine/live_defaults.h"

namespace cepheus::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kNoWindow = 1 << 16;

rnic::NicConfig nic_of(const net::Topology& topology, const TestbedConfig& config) {
  if (config.has_live_nics) {
    rnic::NicConfig live = rnic::live_defaults(topology.mtu, topology.slowest_rate());
    live.moves_payload = live.make_icrc = !config.has_lengths_only;
    return live;
  }
  rnic::NicConfig nic;
  nic.max_qps = config.max_qps;
  nic.max_mtu = topology.mtu;
  nic.make_icrc = false;
  nic.moves_payload = config.moves_payload;
  nic.ack_every = config.ack_every;
  nic.min_ack_timeout = config.ack_timeout;
  nic.congestion = config.congestion;
  if (config.congestion) nic.window_packets = nic.cautious_window = kNoWindow;
  return nic;
}

}  // namespace

Testbed::Testbed(net::Topology topology, const TestbedConfig& config)
    : seed_(config.seed),
      simulator_(~std::uint64_t{0}),
      memory_(std::make_unique_for_overwrite<std::uint8_t[]>(config.memory)),
      memory_size_(config.memory) {
  topology.hello = {};
  topology.seed = config.seed;
  topology.assign_link_seeds();
  rnic::NicConfig nic = nic_of(topology, config);
  if (config.profile != nullptr) config.profile->apply(nic);
  SettingsLog::note(topology, nic);
  std::vector<rnic::NicConfig> nics(topology.hosts.size(), nic);
  Random random(config.seed);
  for (rnic::NicConfig& n : nics) n.seed = random.next();
  simulator_.trace().turn_off();
  network_ = std::make_unique<Network>(simulator_, topology, nics);
  network_->set_checked(false);
  if (config.box.is_box()) network_->run_on_boxes(config.box, config.seed);
}

void Testbed::run_until(const std::function<bool()>& is_done, wire::Duration limit) {
  const Instant end = simulator_.now() + limit;
  while (!is_done()) {
    if (simulator_.now() >= end)
      throw std::runtime_error("nothing ends within the virtual time limit");
    simulator_.run(simulator_.now() + 100us);
  }
}

Testbed::Totals Testbed::totals() const {
  Totals t;
  for (const auto& cable : network_->cables()) {
    t.hops += cable->delivered();
    t.losses += cable->link_counters().dropped_loss;
    t.queue_drops += cable->link_counters().dropped_queue_full;
    t.marked += cable->queue_counters().marked;
  }
  for (std::size_t i = 0; i < network_->host_count(); ++i) {
    const rnic::Counters& c = network_->host(i).nic().counters();
    t.retransmitted += c[rnic::Counter::kTxRetransmitted];
    t.timeouts += c[rnic::Counter::kAckTimeouts];
    t.naks += c[rnic::Counter::kRxNakSequence];
    t.notified += c[rnic::Counter::kRxCnp] + c[rnic::Counter::kRxCeEcho];
  }
  return t;
}

net::LinkConfig paper_link(double gigabits, wire::Duration delay) {
  net::LinkConfig link;
  link.rate = wire::BitRate{static_cast<std::uint64_t>(gigabits * 1e9)};
  link.delay = delay;
  link.queue_bytes = std::uint64_t{1} << 40;
  return link;
}

void lose(net::Topology& topology, LossAt where, double probability) {
  std::set<std::size_t> with_hosts;
  for (net::HostSpec& host : topology.hosts) {
    with_hosts.insert(host.switch_index);
    if (where == LossAt::kCopies) host.down.loss = probability;
  }
  for (net::TrunkSpec& trunk : topology.trunks) {
    const bool copies = where == LossAt::kCopies;
    if (copies || !with_hosts.contains(trunk.b)) trunk.ab.loss = probability;
    if (copies || !with_hosts.contains(trunk.a)) trunk.ba.loss = probability;
  }
}

net::Topology part_of_fat_tree(std::size_t hosts, const net::LinkConfig& link) {
  constexpr std::size_t kPorts = 16, kHostsPerPod = 64;
  const std::size_t pods = (hosts + kHostsPerPod - 1) / kHostsPerPod;
  return with_hosts(net::fat_tree(kPorts, link, std::max<std::size_t>(2, pods)),
                    first_hosts(hosts));
}

net::Topology with_hosts(const net::Topology& topology, const std::vector<std::size_t>& hosts) {
  net::Topology t = topology;
  t.hosts.clear();
  for (const std::size_t host : hosts) t.hosts.push_back(topology.hosts[host]);
  return t;
}

std::vector<std::size_t> random_hosts(std::size_t count, std::size_t total, std::uint64_t seed) {
  std::vector<std::size_t> all = first_hosts(total);
  Random random(seed);
  for (std::size_t i = 0; i < count; ++i) std::swap(all[i], all[i + random.below(total - i)]);
  all.resize(count);
  return all;
}

std::vector<std::size_t> first_hosts(std::size_t count) {
  std::vector<std::size_t> hosts(count);
  std::iota(hosts.begin(), hosts.end(), std::size_t{0});
  return hosts;
}

double microseconds(wire::Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace cepheus::sim
