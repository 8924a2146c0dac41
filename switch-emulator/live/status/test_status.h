// Statuses of fabrics for tests: of a shape with no events yet, with groups added.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "net/shapes.h"
#include "switch-emulator/live/status/status.h"

namespace cepheus::live {

inline constexpr wire::McstId kGroup{198, 18, 0, 1};

// The status of a fabric of that shape before any event.
inline FabricStatus status_of(const net::Topology& topology) {
  const auto plan = topology.plan();
  FabricStatus status;
  for (const net::SwitchConfig& config : plan->configs) {
    SwitchStatus one;
    one.name = config.name;
    for (std::size_t p = 0; p < config.ports.size(); ++p) {
      PortStatus port;
      port.id = wire::PortId(static_cast<std::uint16_t>(p));
      port.name = config.ports[p].name;
      port.kind = config.ports[p].kind;
      port.address = config.ports[p].host;
      one.ports.push_back(port);
    }
    status.switches.push_back(one);
  }
  return status;
}

inline SwitchStatus& switch_called(FabricStatus& status, const std::string& name) {
  for (SwitchStatus& one : status.switches) {
    if (one.name == name) return one;
  }
  throw std::out_of_range(name);
}
inline PortStatus& port_to(FabricStatus& status, const std::string& from, const std::string& to) {
  for (PortStatus& port : switch_called(status, from).ports) {
    if (port.name == to) return port;
  }
  throw std::out_of_range(from + " - " + to);
}

// A group over those ports; `source`: the ingress of its data.
inline void add_tree(FabricStatus& status, wire::McstId id,
                     const std::vector<std::pair<std::string, std::vector<std::string>>>& parts,
                     const std::string& source) {
  for (const auto& [name, ports] : parts) {
    fabric::GroupView view;
    view.id = id;
    view.active = true;
    view.source = wire::Ipv4(10, 0, 0, 1);
    for (const std::string& to : ports) {
      fabric::PathView path;
      path.port = port_to(status, name, to).id;
      path.name = to;
      path.is_host = port_to(status, name, to).kind == net::PortKind::kHost;
      path.is_source = to == source;
      view.paths.push_back(path);
    }
    switch_called(status, name).groups.push_back(view);
  }
}

}  // namespace cepheus::live
