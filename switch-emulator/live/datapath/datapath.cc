// Construction follows the topology: switches, links, queues, hosts. A round is poll(): free read
// ring entries, links, the one-armed interface, hosts' rings, arrivals, timers, publish. A host
// whose uplink is busy leaves its frames in its own ring.
//
// A client that ends is followed by the frames of its ring, and then the switch learns that the
// port is down. Clients that break their ring's rules are listed once.
//
// Bounds: kFlightsPerRound arrivals a round; a batch of each ring. A backlog limit keeps frames out
// of a link's queue that a pause could not stop any more.
#include "switch-emulator/live/datapath/datapath.h"

#include <algorithm>
#include <chrono>

namespace cepheus::live {
namespace {

using wire::Instant;

constexpr std::size_t kFlightsPerRound = 1024;  // arrivals before the hosts' turn

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

void Datapath::start(wire::Instant now) {
  for (Port& port : ports_) {
    if (port.end.kind != net::PortKind::kSwitch) continue;
    switches_[port.of_switch].engine->on_port_up(now, port.id, actions_);
    dispatch(switches_[port.of_switch], now);
  }
  publish();
}

void Datapath::record(std::shared_ptr<PacketRecorder> recorder) {
  recorder_ = std::move(recorder);
  if (recorder_ == nullptr) return;
  for (std::size_t s = 0; s < switches_.size(); ++s) {
    recorder_->begin(s, switches_[s].engine->counters());
  }
}

void Datapath::attach(wire::Instant now, std::size_t host) {
  const Port& port = ports_[hosts_[host].port];
  if (hosts_[host].is_leaving) leave(hosts_[host], now);
  activate(host);
  if (!port.is_up) return;  // its cable is cut
  switches_[port.of_switch].engine->on_port_up(now, port.id, actions_);
  dispatch(switches_[port.of_switch], now);
  publish();
}

wire::Result<void> Datapath::open_one_armed(wire::Instant now) {
  if (auto opened = one_armed_->open(now); !opened) return opened;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (hosts_[host].behind != nullptr) attach(now, host);
  }
  wake_one_armed();
  return {};
}

void Datapath::close_one_armed(wire::Instant now) {
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (hosts_[host].behind != nullptr) detach(now, host);
  }
  one_armed_->close();
  one_armed_is_active_ = false;
}

std::string Datapath::interface_of(std::size_t host) const {
  if (hosts_[host].shared != nullptr) return {};
  const fabric::WirePort* wire = hosts_[host].wire;
  return wire != nullptr ? wire->config().interface : one_armed_->config().interface;
}

bool Datapath::set_interface_frame(std::size_t host, std::uint32_t bytes) {
  const Port& port = ports_[hosts_[host].port];
  const std::uint32_t most = net::largest_frame(hosts_[host].identity.mtu);
  const std::uint32_t before = port_config(host).mtu, now = std::min(bytes, most);
  switches_[port.of_switch].engine->set_mtu(port.id, now);
  return now != before;
}

void Datapath::detach(wire::Instant now, std::size_t host) {
  Host& gone = hosts_[host];
  if (!gone.client->is_open()) return;
  set_aside(gone);
  gone.client->close();
  gone.is_active = gone.has_unread = false;
  gone.turn.on_detached();
  std::erase(active_, host);
  std::erase(unread_, host);
  std::erase(offenders_, host);
  if (gone.last_hop != nullptr) gone.last_hop->clear();
  if (std::erase(full_, host) != 0) pause_ring(gone, false, now);
  gone.is_leaving = true;
  if (!drain(gone, now)) activate(host);
  publish();
}

// The switch learns that the port is down when the last frame of its client is on the link.
void Datapath::leave(Host& host, wire::Instant now) {
  host.is_leaving = false;
  const Port& port = ports_[host.port];
  switches_[port.of_switch].engine->on_port_down(now, port.id, actions_);
  dispatch(switches_[port.of_switch], now);
  look_again(switches_[port.of_switch], now);
}

// Both of its rings may show the violation in one round; it counts once.
void Datapath::offend(std::size_t host) {
  if (std::find(offenders_.begin(), offenders_.end(), host) != offenders_.end()) return;
  hosts_[host].client->count(*hosts_[host].client->offence());
  offenders_.push_back(host);
}

void Datapath::activate(std::size_t host) {
  hosts_[host].turn.wake();
  if (hosts_[host].is_active) return;
  hosts_[host].is_active = true;
  active_.push_back(host);
}

bool Datapath::poll(wire::Instant now) {
  last_poll_ = now;
  if (recorder_ != nullptr && recorder_->end_if_over(now)) recorder_.reset();
  reclaim_unread();
  look_at_rings(now);
  bool worked = has_queues_ && run_links(now);  // events that were due before `now`
  worked = poll_one_armed(now) || worked;
  worked = poll_hosts(now) || worked;
  worked = (has_queues_ ? run_links(now) : land_flights(now)) || worked;
  worked = fire_timers(now) || worked;
  bulk_run_.looked(now, worked);
  publish();
  return worked;
}

bool Datapath::poll_hosts(wire::Instant now) {
  bool worked = false;
  for (std::size_t i = 0; i < active_.size();) {
    Host& host = hosts_[active_[i]];
    if (take_from(host, now)) {
      worked = true;
      publish();
    } else if (host.left_over.is_empty() && host.turn.may_rest(now) && host.client->arm()) {
      host.is_active = false;
      active_[i] = active_.back();
      active_.pop_back();
      continue;
    }
    ++i;
  }
  return worked;
}

// A shaped uplink paces its host as a wire paces a NIC: frames that do not fit yet wait in the
// host's own ring.
bool Datapath::uplink_is_busy(Host& host, wire::Instant now) {
  if (host.behind != nullptr && host.behind->must_wait()) {
    host.turn.wait_for_link(now + fabric::OneArmedInterface::kBetweenSends);
    return true;
  }
  const net::Link& uplink = transit_.link(host.uplink);
  const wire::BitRate rate = uplink.config().rate;
  if (rate.is_unlimited()) return false;
  if (host.pause.is_paused(now)) {
    host.turn.wait_for_link(host.pause.until());
    return true;
  }
  const wire::Bytes limit = links_[host.uplink].backlog_limit;
  const wire::Bytes queued = uplink.queued_bytes(now);
  const bool has_space = transit_.has_space({.host = host.identity.host_index});
  const bool is_lossless = uplink.config().pfc.on;
  if (queued < limit && (has_space || (queued == 0 && !is_lossless))) return false;
  if (queued == 0) {  // until one of its frames has arrived
    host.turn.wait_for_link(transit_.next_arrival());
    return true;
  }
  host.turn.wait_for_link(now + rate.time_for(queued - std::min(queued, limit) / 2));
  return true;
}

void Datapath::reclaim_unread() {
  std::erase_if(unread_, [this](std::size_t index) {
    Host& host = hosts_[index];
    host.client->reclaim();
    if (host.client->offence()) offend(index);
    host.has_unread = host.client->unread() != 0;
    return !host.has_unread;
  });
}

bool Datapath::land_flights(wire::Instant now) {
  std::size_t landed = 0;
  for (; landed < kFlightsPerRound && transit_.next_arrival() <= now; ++landed) {
    transit_.land_next(now);
  }
  return landed > 0;
}

bool Datapath::fire_timers(wire::Instant now) {
  if (now < earliest_timer_) return false;
  earliest_timer_ = wire::kNever;
  bool fired = false;
  for (SwitchState& state : switches_) {
    if (state.deadline <= now) {
      fired = true;
      state.engine->on_timer(now, actions_);
      dispatch(state, now);
      look_again(state, now);  // a trunk may have gone dark
    }
    earliest_timer_ = std::min(earliest_timer_, state.deadline);
  }
  return fired;
}

void Datapath::take_settings(const std::vector<net::SwitchSpec>& switches) {
  for (std::size_t s = 0; s < switches_.size(); ++s) {
    SwitchState& state = switches_[s];
    state.engine->take_settings(with_clock(switches[s].config));
    state.deadline = state.engine->deadline();
    earliest_timer_ = std::min(earliest_timer_, state.deadline);
  }
}

void Datapath::publish() { fabric::flush_all(flush_list_); }

wire::Instant Datapath::deadline() const {
  wire::Instant next = std::min(transit_.next_arrival(), earliest_timer_);
  if (has_queues_) next = std::min({next, due_links_.earliest(), flow_due_});
  if (!full_.empty()) next = std::min(next, last_poll_ + LastHop::kBetweenLooks);
  if (one_armed_ != nullptr && one_armed_->is_waiting()) {
    next = std::min(next, last_poll_ + fabric::OneArmedInterface::kBetweenSends);
  }
  for (const std::size_t host : active_) {
    const wire::Instant resume = hosts_[host].turn.resume();
    if (resume > last_poll_) next = std::min(next, resume);
  }
  return next;
}

bool Datapath::arm() {
  if (one_armed_is_active_ && !one_armed_->arm()) return false;
  for (const std::size_t host : active_) {
    if (hosts_[host].turn.resume() > last_poll_) continue;  // has work, but not before then
    if (!hosts_[host].left_over.is_empty() || !hosts_[host].client->arm()) return false;
  }
  std::erase_if(active_, [this](std::size_t host) {
    hosts_[host].is_active = hosts_[host].turn.resume() > last_poll_;
    return !hosts_[host].is_active;
  });
  one_armed_is_active_ = false;
  return true;
}

}  // namespace cepheus::live
