// Built in this order: hosts, switches, their flow control, then for each port the cable out of it.
// A host's cables are both made at its switch's port, a trunk's one at each end. Recordings number
// hosts first, then switches. A topology without a plan throws std::invalid_argument. Cutting a
// trunk stops its cables; the switches see it only if `noticed`.
#include "fabric-sim/core/network.h"

#include <algorithm>
#include <stdexcept>

namespace cepheus::sim {

Network::Network(Simulator& simulator, const net::Topology& topology,
                 const std::vector<rnic::NicConfig>& nics)
    : simulator_(simulator), pool_(net::largest_frame(topology.mtu)) {
  const auto plan = topology.plan();
  if (!plan) throw std::invalid_argument(plan.error().text);
  for (std::size_t i = 0; i < topology.hosts.size(); ++i) {
    const net::HostSpec& spec = topology.hosts[i];
    rnic::NicConfig nic = nics[i];
    nic.address = spec.address;
    nic.mac = wire::mac_for(spec.address);
    nic.gateway = plan->configs[spec.switch_index].mac;
    hosts_.push_back(std::make_unique<Host>(simulator_, pool_, spec.name, nic, topology.mrp_port));
    hosts_.back()->set_number(static_cast<std::uint16_t>(i));
    hosts_.back()->set_key(plan->configs[spec.switch_index].mrp_key);
  }
  for (const net::SwitchConfig& config : plan->configs) {
    switches_.push_back(std::make_unique<SwitchNode>(simulator_, pool_, config));
    const std::size_t number = hosts_.size() + switches_.size() - 1;
    switches_.back()->set_number(static_cast<std::uint16_t>(number));
  }
  buffers_ = net::buffer_plans(topology);
  for (std::size_t at = 0; at < buffers_.size(); ++at) {
    switches_[at]->add_flow_control(buffers_[at]);
  }
  buffers_.resize(switches_.size());
  for (std::size_t at = 0; at < plan->ends.size(); ++at) {
    for (std::size_t p = 0; p < plan->ends[at].size(); ++p) {
      const net::PortEnd& end = plan->ends[at][p];
      const wire::PortId port(static_cast<std::uint16_t>(p));
      if (end.kind == net::PortKind::kHost) {
        wire_host(topology, at, port, end.host);
      } else {
        wire_trunk(topology, at, port, end);
      }
    }
  }
}

Cable& Network::add_cable(const std::string& from, const std::string& to_name,
                          const net::LinkConfig& link, FrameSink& to, wire::PortId port) {
  cables_.push_back(
      std::make_unique<Cable>(simulator_, pool_, from + ">" + to_name, link, to, port));
  return *cables_.back();
}

void Network::connect(std::size_t at, wire::PortId port, Cable& cable) {
  if (buffers_[at].needs_queue(cable.config())) cable.add_queue(switches_[at].get());
  switches_[at]->connect(port, cable);
}

void Network::wire_host(const net::Topology& topology, std::size_t at, wire::PortId port,
                        std::size_t host) {
  SwitchNode& node = *switches_[at];
  Host& machine = *hosts_[host];
  const net::HostSpec& spec = topology.hosts[host];
  host_ports_.resize(hosts_.size());
  host_ports_[host] = {&node, port};
  machine.connect(add_cable(spec.name, node.name(), spec.up, node, port));
  connect(at, port, add_cable(node.name(), spec.name, spec.down, machine, wire::PortId(0)));
}

// The cable out of this port; the peer's port has the other direction.
void Network::wire_trunk(const net::Topology& topology, std::size_t at, wire::PortId port,
                         const net::PortEnd& end) {
  const net::TrunkSpec& trunk = topology.trunks[end.trunk];
  SwitchNode& node = *switches_[at];
  SwitchNode& peer = *switches_[end.peer_switch];
  const net::LinkConfig& link = trunk.a == at ? trunk.ab : trunk.ba;
  Cable& cable = add_cable(node.name(), peer.name(), link, peer, end.peer_port);
  connect(at, port, cable);
  trunk_ends_.resize(topology.trunks.size());
  trunk_cables_.resize(topology.trunks.size());
  const std::size_t which = trunk.a == at ? 0 : 1;
  trunk_ends_[end.trunk][which] = {&node, port};
  trunk_cables_[end.trunk][which] = &cable;
}

void Network::set_trunk(Instant now, std::size_t trunk, bool whole, bool one_way, bool noticed) {
  trunk_cables_[trunk][0]->set_up(whole);
  if (!one_way) trunk_cables_[trunk][1]->set_up(whole);
  if (!noticed) return;
  for (const auto& [node, port] : trunk_ends_[trunk]) node->set_port(now, port, whole);
}

void Network::run_on_boxes(const BoxManners& manners, std::uint64_t seed) {
  for (const auto& node : switches_) node->run_on_box(manners, seed++);
}

const SwitchNode& Network::peer_of(const SwitchNode& node, wire::PortId port) const {
  for (const auto& [a, b] : trunk_ends_) {
    if (a.first == &node && a.second == port) return *b.first;
    if (b.first == &node && b.second == port) return *a.first;
  }
  throw std::logic_error(node.name() + " has no trunk at this port");
}

void Network::set_host_port(Instant now, std::size_t host, bool up) {
  const auto& [node, port] = host_ports_[host];
  node->set_port(now, port, up);
}

void Network::set_faults(double loss, double duplicate, double reorder, double corrupt) {
  for (const auto& cable : cables_) cable->set_faults(loss, duplicate, reorder, corrupt);
}

void Network::set_checked(bool checked) {
  for (const auto& host : hosts_) host->set_checked(checked);
  for (const auto& node : switches_) node->set_checked(checked);
}

std::size_t Network::frames_in_flight() const {
  std::size_t n = 0;
  for (const auto& cable : cables_) n += cable->in_flight();
  for (const auto& node : switches_) n += node->box() == nullptr ? 0 : node->box()->frames();
  return n;
}

bool Network::carries_roce() const {
  const auto has_frames = [](const auto& node) {
    return node->box() != nullptr && node->box()->frames() > 0;
  };
  return std::ranges::any_of(switches_, has_frames) ||
         std::ranges::any_of(cables_, [](const auto& cable) { return cable->carries_roce(); });
}

}  // namespace cepheus::sim
