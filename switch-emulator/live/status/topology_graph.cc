// A trunk is listed by both of its switches; the n-th one between two switches is the n-th at
// either end. Its state is the worse of both. Floors grow from switches with hosts upwards, one
// floor a round; a switch that is joined to no host stays on floor 1. A group's cables are all
// those that its tables use.
#include "switch-emulator/live/status/topology_graph.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace cepheus::live {
namespace {

using Cable = TopologyGraph::Cable;

TopologyGraph::State state_of(const PortStatus& port) {
  if (!port.in_up || !port.out_up) return TopologyGraph::State::kCut;
  return port.dark ? TopologyGraph::State::kDark : TopologyGraph::State::kUp;
}

Cable cable_at(std::size_t from, const PortStatus& port) {
  Cable cable;
  cable.from = from;
  cable.port = port.id;
  cable.name = port.kind == net::PortKind::kHost ? port.name : neighbour_name(port.name);
  cable.state = state_of(port);
  cable.payload_bytes = port.rx.payload_bytes + port.tx.payload_bytes;
  return cable;
}

}  // namespace

TopologyGraph::TopologyGraph(const FabricStatus& status) : floors(status.switches.size(), 0) {
  read_cables(status);
  find_floors();
  std::set<wire::McstId> seen;
  for (const SwitchStatus& one : status.switches) {
    for (const fabric::GroupView& view : one.groups) {
      if (view.active && seen.insert(view.id).second) trees.push_back(read_tree(status, view.id));
    }
  }
}

// A trunk appears at both ends; the second of two between the same switches is the second at either
// end.
void TopologyGraph::read_cables(const FabricStatus& status) {
  std::map<std::string, std::size_t> by_name;
  for (std::size_t s = 0; s < status.switches.size(); ++s) by_name[status.switches[s].name] = s;
  std::map<std::pair<std::pair<std::size_t, std::size_t>, std::size_t>, std::size_t> trunks;
  for (std::size_t s = 0; s < status.switches.size(); ++s) {
    std::map<std::size_t, std::size_t> nth;
    for (const PortStatus& port : status.switches[s].ports) {
      Cable cable = cable_at(s, port);
      std::size_t number = cables.size();
      if (const auto other = by_name.find(cable.name);
          port.kind == net::PortKind::kSwitch && other != by_name.end()) {
        cable.to = other->second;
        number =
            trunks.try_emplace({std::minmax(s, cable.to), nth[cable.to]++}, number).first->second;
      }
      at_[{s, port.id.value()}] = number;
      if (number == cables.size()) {
        cables.push_back(std::move(cable));
      } else {
        cables[number].state = std::max(cables[number].state, cable.state);
      }
    }
  }
}

void TopologyGraph::find_floors() {
  for (const Cable& c : cables) {
    if (c.to == kNone) floors[c.from] = 1;
  }
  bool grew = true;
  for (std::size_t floor = 1; grew; ++floor) {
    grew = false;
    for (const Cable& c : cables) {
      if (c.to == kNone) continue;
      for (const auto& [low, high] : {std::pair(c.from, c.to), std::pair(c.to, c.from)}) {
        if (floors[low] != floor || floors[high] != 0) continue;
        floors[high] = floor + 1;
        grew = true;
      }
    }
  }
  for (std::size_t& floor : floors) floor = std::max<std::size_t>(floor, 1);  // joined to no host
}

TopologyGraph::Tree TopologyGraph::read_tree(const FabricStatus& status, wire::McstId id) const {
  Tree tree;
  tree.root = static_cast<std::size_t>(tree_root(status, id) - status.switches.data());
  std::set<std::size_t> used;
  for (std::size_t s = 0; s < status.switches.size(); ++s) {
    for (const fabric::GroupView& part : status.switches[s].groups) {
      if (part.id != id || !part.active) continue;
      if (s == tree.root) tree.group = part;
      for (const fabric::PathView& path : part.paths) {
        if (const auto at = at_.find({s, path.port.value()}); at != at_.end()) {
          used.insert(at->second);
        }
      }
    }
  }
  tree.cables.assign(used.begin(), used.end());
  return tree;
}

std::size_t TopologyGraph::top() const {
  return floors.empty() ? 0 : *std::max_element(floors.begin(), floors.end());
}

const char* to_string(TopologyGraph::State state) {
  constexpr std::array kNames{"up", "dark", "cut"};
  return kNames[static_cast<std::size_t>(state)];
}

nlohmann::json topology_json(const FabricStatus& status) {
  const TopologyGraph graph(status);
  const auto name = [&](std::size_t s) { return status.switches[s].name; };
  nlohmann::json document = {{"switches", nlohmann::json::array()},
                             {"cables", nlohmann::json::array()},
                             {"groups", nlohmann::json::array()}};
  for (std::size_t s = 0; s < status.switches.size(); ++s) {
    document["switches"].push_back({{"name", name(s)}, {"floor", graph.floors[s]}});
  }
  for (const Cable& c : graph.cables) {
    document["cables"].push_back({{"from", name(c.from)},
                                  {"to", c.name},
                                  {"kind", c.to == TopologyGraph::kNone ? "host" : "trunk"},
                                  {"state", to_string(c.state)},
                                  {"payload_bytes", c.payload_bytes}});
  }
  for (const TopologyGraph::Tree& tree : graph.trees) {
    document["groups"].push_back({{"id", tree.group.id.to_string()},
                                  {"source", tree.group.source.to_string()},
                                  {"root", name(tree.root)},
                                  {"cables", tree.cables}});
  }
  return document;
}

}  // namespace cepheus::live
