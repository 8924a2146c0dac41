// A datapath's cables: their names, their faults, and captures of their frames. A port is down for
// its switch while either direction of its cable is cut, and each change is notified once. Without
// a client, a host's port is down anyway. A capture that can't be opened fails the start.
#include <filesystem>
#include <system_error>

#include "switch-emulator/live/datapath/datapath.h"

namespace cepheus::live {

Datapath::LinkState Datapath::link_state(std::uint32_t link) const {
  return {transit_.link(link).config().loss, transit_.link(link).is_up()};
}

void Datapath::set_link_state(wire::Instant now, std::uint32_t link, const LinkState& state) {
  net::Link& changed = transit_.link(link);
  const net::LinkConfig& config = changed.config();
  changed.set_faults(state.loss, config.duplicate, config.reorder, config.corrupt);
  changed.set_up(state.up);
  Port& far = ports_[links_[link].port];
  notify_if_cut(now, far);
  if (transit_.kind(link) == Transit::Kind::kTrunk) {
    notify_if_cut(now, ports_[links_[far.out].port]);
  }
  publish();
}

void Datapath::notify_if_cut(wire::Instant now, Port& port) {
  const bool up = transit_.link(port.in).is_up() && transit_.link(port.out).is_up();
  if (up == port.is_up) return;
  port.is_up = up;
  const bool is_host = port.end.kind == net::PortKind::kHost;
  if (is_host && !hosts_[port.end.host].client->is_open()) return;  // down anyway
  SwitchState& state = switches_[port.of_switch];
  if (up) {
    state.engine->on_port_up(now, port.id, actions_);
  } else {
    state.engine->on_port_down(now, port.id, actions_);
  }
  dispatch(state, now);
  look_again(state, now);
}

std::vector<Datapath::Cable> Datapath::cables() const {
  std::vector<Cable> all;
  for (const Host& host : hosts_) {
    const SwitchState& at = switches_[ports_[host.port].of_switch];
    const std::string& name = host.identity.name;
    all.push_back({name, at.engine->config().name, name, host.uplink, host.downlink});
  }
  for (const Port& port : ports_) {
    if (port.end.kind != net::PortKind::kSwitch) continue;
    const net::SwitchConfig& near = switches_[port.of_switch].engine->config();
    const net::SwitchConfig& far = switches_[port.end.peer_switch].engine->config();
    const std::string name = near.name + "-" + near.ports[port.id.value()].name;
    all.push_back({near.name, far.name, name, port.out, port.in});
  }
  return all;
}

wire::Result<void> Datapath::capture(const std::string& directory,
                                     const std::function<void(const std::string&)>& warn) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return wire::unavailable("can't make the capture directory " + directory + ": " +
                             error.message());
  }
  for (Port& port : ports_) {
    const net::SwitchConfig& config = switches_[port.of_switch].engine->config();
    const std::string& peer = config.ports[port.id.value()].name;
    const bool is_host = port.end.kind == net::PortKind::kHost;
    const std::string file = is_host ? peer : config.name + "-" + peer;
    auto tap = PcapTap::create(directory + "/" + file + ".pcap", warn);
    if (!tap) return tl::unexpected(tap.error());
    port.tap = std::move(*tap);
  }
  return {};
}

void Datapath::flush_captures() {
  for (Port& port : ports_) {
    if (port.tap != nullptr) port.tap->flush();
  }
}

}  // namespace cepheus::live
