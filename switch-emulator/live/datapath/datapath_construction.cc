// Construction follows the topology: switches, links, queues, hosts. take_settings() follows a
// topology that was read again. A backlog limit keeps frames out of a link's queue that a pause
// could not stop any more.
#include <algorithm>
#include <chrono>

#include "switch-emulator/live/datapath/datapath.h"

namespace cepheus::live {
namespace {

// Time for which an uplink takes frames from its host's ring in advance: enough to keep the wire
// busy until the next look, even if programs that compute take the cores (WaitPolicy::kGather).
// Less for a lossless link: frames taken before a pause still arrive, and need headroom.
constexpr std::chrono::duration<double> kBacklogTime = std::chrono::milliseconds(1);
constexpr std::chrono::duration<double> kLosslessBacklogTime = std::chrono::microseconds(200);
constexpr wire::Bytes kMinBacklog = 16 << 10;

// One frame more than the limit still fits into the queue, however short that is: the frame waits
// for an idle link, if need be.
wire::Bytes backlog_limit(const net::LinkConfig& config, wire::Bytes largest_frame) {
  const auto time = config.pfc.on ? kLosslessBacklogTime : kBacklogTime;
  const auto in_time =
      static_cast<wire::Bytes>(static_cast<double>(config.rate.bits_per_second) / 8 * time.count());
  const wire::Bytes usual = std::min(std::max(in_time, kMinBacklog), config.queue_bytes / 2 + 1);
  return config.queue_bytes > largest_frame ? std::min(usual, config.queue_bytes - largest_frame)
                                            : 1;
}

// The engine has an exact clock; this process may lose its core.
net::SwitchConfig with_clock(net::SwitchConfig config) {
  config.feedback_wait += wire::times::kSwitchClock;
  return config;
}

}  // namespace

Datapath::Datapath(const net::Topology& topology, net::Topology::Plan plan)
    : icrc_always_(topology.icrc_always),
      pools_(fabric::PoolGeometry::for_hosts(static_cast<std::uint32_t>(topology.hosts.size()),
                                             topology.mtu)),
      held_(pools_),
      transit_(pools_, topology.hosts.size(), *this),
      hosts_(topology.hosts.size()) {
  flush_list_.reserve(hosts_.size());
  private_payload_.resize(pools_.geometry().slot_bytes);
  for (const net::HostSpec& host : topology.hosts) neighbours_.insert(host.address);
  for (const net::SwitchConfig& config : plan.configs) neighbours_.insert(config.address);
  if (!topology.one_armed.empty()) {
    one_armed_ = std::make_unique<fabric::OneArmedInterface>(
        pools_, fabric::OneArmedConfig{topology.one_armed, topology.mcst_pool,
                                       net::largest_frame(topology.mtu), topology.one_armed_dpdk});
  }
  name_data_slots(topology, plan);
  build_switches(plan);
  build_links(topology);
  add_queues(topology);
  for (std::size_t port = 0; port < ports_.size(); ++port) {
    if (ports_[port].end.kind == net::PortKind::kHost) add_host(topology, port);
  }
  const wire::BitRate slowest = topology.slowest_rate();
  for (Host& host : hosts_) host.identity.slowest_rate = slowest;
  reporting_ = Reporting(report_sources());
}

void Datapath::build_switches(net::Topology::Plan& plan) {
  for (std::size_t s = 0; s < plan.configs.size(); ++s) {
    SwitchState state;
    state.first_port = ports_.size();
    for (std::size_t p = 0; p < plan.ends[s].size(); ++p) {
      Port port;
      port.of_switch = s;
      port.id = wire::PortId(static_cast<std::uint16_t>(p));
      port.end = plan.ends[s][p];
      ports_.push_back(std::move(port));
    }
    if (icrc_always_) plan.configs[s].check_icrc = false;  // in this fabric, every hop checks it
    state.engine = std::make_unique<fabric::Switch>(with_clock(std::move(plan.configs[s])), held_);
    switches_.push_back(std::move(state));
  }
}

std::uint32_t Datapath::add_link(const net::LinkConfig& config, Transit::Kind kind,
                                 std::size_t port, std::uint32_t mtu) {
  DirectedLink& link = links_.emplace_back();
  link.port = port;
  link.backlog_limit = backlog_limit(config, net::largest_frame(mtu));
  return transit_.add(config, kind, ports_[port].drops);
}

void Datapath::build_links(const net::Topology& topology) {
  for (std::size_t p = 0; p < ports_.size(); ++p) {
    Port& port = ports_[p];
    if (port.end.kind == net::PortKind::kHost) {
      const net::HostSpec& host = topology.hosts[port.end.host];
      port.in = add_link(host.up, Transit::Kind::kUplink, p, topology.mtu);
      port.out = add_link(host.down, Transit::Kind::kDownlink, p, topology.mtu);
    } else {
      const net::TrunkSpec& trunk = topology.trunks[port.end.trunk];
      const std::size_t peer =
          switches_[port.end.peer_switch].first_port + port.end.peer_port.value();
      const net::LinkConfig& outward = port.of_switch == trunk.a ? trunk.ab : trunk.ba;
      port.out = add_link(outward, Transit::Kind::kTrunk, peer, topology.mtu);
      ports_[peer].in = port.out;
    }
  }
}

void Datapath::add_host(const net::Topology& topology, std::size_t port) {
  const std::size_t index = ports_[port].end.host;
  const net::HostSpec& spec = topology.hosts[index];
  const net::SwitchConfig& config = switches_[ports_[port].of_switch].engine->config();
  Host& host = hosts_[index];
  host.identity.name = spec.name;
  host.identity.address = spec.address;
  host.identity.mac = config.ports[ports_[port].id.value()].peer_mac;
  host.identity.gateway = config.mac;
  host.identity.mtu = net::mtu_of(spec.up, topology.mtu);
  host.identity.rate = spec.up.rate;
  host.identity.icrc_always = topology.icrc_always;
  host.identity.host_index = static_cast<std::uint32_t>(index);
  host.identity.host_count = static_cast<std::uint32_t>(hosts_.size());
  host.port = port;
  host.uplink = ports_[port].in;
  host.downlink = ports_[port].out;
  add_client(spec, config, host);
  const bool is_shared = host.behind != nullptr;
  host.sight =
      std::make_unique<HostSight>(*host.client, is_shared ? &one_armed_->counters() : nullptr);
  switches_[ports_[port].of_switch].engine->watch(ports_[port].id, *host.sight);
}

void Datapath::add_client(const net::HostSpec& spec, const net::SwitchConfig& config, Host& host) {
  const std::size_t index = host.identity.host_index;
  if (spec.interface.empty() && one_armed_ != nullptr) {
    auto behind = std::make_unique<fabric::OneArmedPort>(
        *one_armed_, flush_list_,
        fabric::OneArmedHost{index, spec.address, spec.mac, spec.any_mac});
    one_armed_->add(*behind);
    host.behind = behind.get();
    host.client = std::move(behind);
    return;
  }
  if (spec.interface.empty()) {
    auto shared = std::make_unique<fabric::SwitchPort>(pools_, static_cast<std::uint32_t>(index),
                                                       flush_list_);
    host.shared = shared.get();
    host.client = std::move(shared);
    if (spec.down.pfc.on) host.last_hop = std::make_unique<LastHop>(*host.shared, pools_);
    return;
  }
  auto wire = std::make_unique<fabric::WirePort>(
      pools_, neighbours_, flush_list_,
      fabric::WirePortConfig{spec.interface, spec.address, config.mac, config.mcst_pool,
                             config.ports[ports_[host.port].id.value()].mtu});
  host.wire = wire.get();
  host.client = std::move(wire);
}

std::vector<Reporting::SwitchSource> Datapath::report_sources() const {
  std::vector<Reporting::SwitchSource> all(switches_.size());
  for (std::size_t s = 0; s < switches_.size(); ++s) {
    all[s].engine = switches_[s].engine.get();
    if (one_armed_ != nullptr) all[s].one_armed = &one_armed_->counters();
  }
  for (const Port& port : ports_) {
    Reporting::PortSource source{.in = &transit_.link(port.in),
                                 .out = &transit_.link(port.out),
                                 .rx = &port.rx,
                                 .tx = &port.tx,
                                 .drops = &port.drops};
    if (has_queues_) source.queue = [this, &port] { return read_queue(port); };
    if (port.end.kind == net::PortKind::kHost) {
      const Host& host = hosts_[port.end.host];
      source.access = host.client.get();
      if (host.shared != nullptr) {
        source.client_pid = [&host] { return std::int64_t{host.shared->client().pid}; };
      }
    }
    all[port.of_switch].ports.push_back(std::move(source));
  }
  return all;
}

void Datapath::take_settings(const std::vector<net::SwitchSpec>& switches) {
  for (std::size_t s = 0; s < switches_.size(); ++s) {
    SwitchState& state = switches_[s];
    state.engine->take_settings(with_clock(switches[s].config));
    state.deadline = state.engine->deadline();
    earliest_timer_ = std::min(earliest_timer_, state.deadline);
  }
}

}  // namespace cepheus::live
