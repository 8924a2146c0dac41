// A round is poll(): free read ring entries, links, the one-armed interface, hosts' rings,
// arrivals, timers, publish. A host whose uplink is busy leaves its frames in its own ring.
//
// A client that ends is followed by the frames of its ring, and then the switch learns that the
// port is down. Clients that break their ring's rules are listed once.
//
// Bounds: kFlightsPerRound arrivals a round; a batch of each ring.
#include "switch-emulator/live/datapath/datapath.h"

#include <algorithm>
#include <chrono>

namespace cepheus::live {
namespace {

using wire::Instant;

constexpr std::size_t kFlightsPerRound = 1024;  // arrivals before the hosts' turn

}  // namespace

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
