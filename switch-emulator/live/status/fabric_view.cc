// Each number of the picture comes from the later snapshot, and rates from both. Counters that
// shrank, or a fabric with another pid, have rate 0. A group's rate counts at the root of its tree,
// and only if the earlier snapshot has the same id and epoch there. Loss is the worse of a cable's
// directions.
#include "switch-emulator/live/status/fabric_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/late.h"
#include "switch-emulator/live/status/readings.h"
#include "switch-emulator/live/status/topology_graph.h"

namespace cepheus::live {
namespace {

using nlohmann::json;

// Growth between both snapshots, per second.
class Rates {
 public:
  Rates(const Snapshot& now, const Snapshot* before)
      : before_(before != nullptr && before->status.pid == now.status.pid ? before : nullptr),
        seconds_(before_ != nullptr ? now.seconds - before_->seconds : 0) {}

  const FabricStatus* before() const { return before_ == nullptr ? nullptr : &before_->status; }
  double of(std::uint64_t now, std::uint64_t before) const {
    return seconds_ > 0 && now > before ? static_cast<double>(now - before) / seconds_ : 0;
  }

 private:
  const Snapshot* before_;
  double seconds_;
};

const PortStatus* port_of(const FabricStatus& status, std::size_t of_switch, wire::PortId id) {
  if (of_switch >= status.switches.size()) return nullptr;
  const auto& ports = status.switches[of_switch].ports;
  const auto at = std::ranges::find(ports, id, &PortStatus::id);
  return at == ports.end() ? nullptr : &*at;
}

struct Flow {
  double out_bps = 0, in_bps = 0;
};

Flow flow_of(const TopologyGraph::Cable& cable, const PortStatus& port, const Rates& rates) {
  if (rates.before() == nullptr) return {};
  const PortStatus* then = port_of(*rates.before(), cable.from, cable.port);
  if (then == nullptr) return {};
  return {8 * rates.of(port.tx.payload_bytes, then->tx.payload_bytes),
          8 * rates.of(port.rx.payload_bytes, then->rx.payload_bytes)};
}

// As `cepheusctl link` names it.
std::string link_name(const FabricStatus& status, const TopologyGraph::Cable& cable,
                      const PortStatus& port) {
  if (cable.to == TopologyGraph::kNone) return cable.name;
  return status.switches[cable.from].name + "-" + port.name;
}

json cable_json(const FabricStatus& status, const TopologyGraph::Cable& cable,
                const PortStatus& port, const Flow& flow) {
  const bool is_host = cable.to == TopologyGraph::kNone;
  json host;
  if (is_host) {
    host = {{"address", port.address.to_string()},
            {"pid", port.client_pid},
            {"attached", port.attached}};
  }
  return {{"from", cable.from},
          {"to", is_host ? -1 : static_cast<std::int64_t>(cable.to)},
          {"name", cable.name},
          {"link", link_name(status, cable, port)},
          {"state", to_string(cable.state)},
          {"loss", std::max(port.in_loss, port.link.loss)},
          {"out_bps", flow.out_bps},
          {"in_bps", flow.in_bps},
          {"payload_bytes", cable.payload_bytes},
          {"host", host}};
}

const fabric::GroupView* same_group(const FabricStatus& status, const fabric::GroupView& group,
                                    std::size_t root) {
  if (root >= status.switches.size()) return nullptr;
  for (const fabric::GroupView& then : status.switches[root].groups) {
    if (then.id == group.id && then.epoch == group.epoch) return &then;
  }
  return nullptr;
}

std::size_t members_of(const FabricStatus& status, wire::McstId id) {
  std::size_t members = 0;
  for (const SwitchStatus& one : status.switches) {
    for (const fabric::GroupView& group : one.groups) {
      if (group.id != id || !group.active) continue;
      members +=
          static_cast<std::size_t>(std::ranges::count_if(group.paths, &fabric::PathView::is_host));
    }
  }
  return members;
}

json group_json(const FabricStatus& status, const TopologyGraph::Tree& tree, const HostNames& names,
                const Rates& rates) {
  const fabric::GroupView& group = tree.group;
  const fabric::GroupView* then =
      rates.before() == nullptr ? nullptr : same_group(*rates.before(), group, tree.root);
  WaitedFor late = waited_for(status, group.id);
  return {{"id", group.id.to_string()},
          {"source", names.of(group.source)},
          {"leader", names.of(group.leader)},
          {"next_source", names.of(next_source(status, group.id))},
          {"cables", tree.cables},
          {"members", members_of(status, group.id)},
          {"bps", then == nullptr ? 0 : 8 * rates.of(group.data_bytes, then->data_bytes)},
          {"behind",
           {{"names", late.names}, {"packets", late.packets}, {"late_ns", late.late.count()}}},
          {"failure", late.failure},
          {"nak_held", group.held_nak.has_value()}};
}

json counters_json(const FabricStatus& status, const Rates& rates) {
  const std::vector<Total> now = totals(status);
  const std::vector<Total> before = rates.before() == nullptr ? now : totals(*rates.before());
  json list = json::array();
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto& [reading, total] = now[i];
    if (total == 0) continue;
    const bool grows = reading->kind == Kind::kCounter;
    list.push_back({{"name", reading->full_name},
                    {"help", reading->help},
                    {"kind", grows ? "counter" : "gauge"},
                    {"unit", reading->unit()},
                    {"total", total},
                    {"per_second", grows ? rates.of(total, before[i].value) : 0},
                    {"is_drop", reading->is_drop()}});
  }
  return list;
}

}  // namespace

json fabric_view(const Snapshot& now, const Snapshot* before) {
  const FabricStatus& status = now.status;
  const Rates rates(now, before);
  const TopologyGraph graph(status);
  const HostNames names(status);
  json switches = json::array(), cables = json::array(), groups = json::array();
  for (std::size_t s = 0; s < status.switches.size(); ++s) {
    switches.push_back({{"name", status.switches[s].name}, {"floor", graph.floors[s]}});
  }
  double sent = 0, delivered = 0;
  for (const TopologyGraph::Cable& cable : graph.cables) {
    const PortStatus& port = *port_of(status, cable.from, cable.port);
    const Flow flow = flow_of(cable, port, rates);
    cables.push_back(cable_json(status, cable, port, flow));
    if (cable.to != TopologyGraph::kNone) continue;
    sent += flow.in_bps;
    delivered += flow.out_bps;
  }
  for (const TopologyGraph::Tree& tree : graph.trees) {
    groups.push_back(group_json(status, tree, names, rates));
  }
  return {{"uptime_seconds", status.uptime_seconds},
          {"pid", status.pid},
          {"switches", std::move(switches)},
          {"cables", std::move(cables)},
          {"groups", std::move(groups)},
          {"sent_bps", sent},
          {"delivered_bps", delivered},
          {"counters", counters_json(status, rates)}};
}

}  // namespace cepheus::live
