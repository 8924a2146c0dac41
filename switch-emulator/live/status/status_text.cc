// Three views: ports with their switch's counts, groups as trees, readings above 0 with their
// places. A group appears once, seen from the switch where its data enters; its tree visits each
// switch once.
//
// Names are made printable, and long lists show their first four. Colour marks what needs
// attention: losses, lags, cut and dark links.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "net/units.h"
#include "switch-emulator/live/status/readings.h"
#include "switch-emulator/live/status/status.h"
#include "switch-emulator/live/status/text_table.h"

namespace cepheus::live {
namespace {

std::string hex24(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%06x", value);
  return text;
}

std::string count_of(std::uint64_t n, const char* thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

template <typename Object>
std::uint64_t drops_of(const Object& object) {
  std::uint64_t sum = 0;
  for (const auto& reading : readings<Object>()) {
    if (reading.is_drop() && reading.listing != Listing::kPart) sum += reading.of(object);
  }
  return sum;
}

// The engine's drops are shown for the switch; a port's row shows the losses of its links and of
// the port.
std::uint64_t lost_at(const PortStatus& port) {
  return drops_of(port.in) + drops_of(port.out) + drops_of(port);
}

// Both ways in one cell; separately if they differ, as after `cepheusctl link --direction`.
std::string loss_of(const PortStatus& port) {
  const std::string in = net::number_to_text(port.in_loss),
                    out = net::number_to_text(port.link.loss);
  return in == out ? out : "rx " + in + ", tx " + out;
}

TextTable::Cell state_cell(const PortStatus& port) {
  if (!port.in_up || !port.out_up) {
    const char* way = port.in_up ? " (tx)" : port.out_up ? " (rx)" : "";
    return {std::string("cut") + way, Style::kAlarm};
  }
  if (port.dark) return {"dark", Style::kAlarm};
  if (port.kind == net::PortKind::kSwitch) return {"trunk", Style::kQuiet};
  if (port.attached) {
    return {port.client_pid == 0 ? "attached" : "pid " + std::to_string(port.client_pid),
            Style::kGood};
  }
  if (!port.reserved) return {"free", Style::kQuiet};
  return {port.reserved_by == 0 ? "reserved" : "for pid " + std::to_string(port.reserved_by),
          Style::kPlain};
}

std::string ports_text(const SwitchStatus& one, bool colour) {
  TextTable table({{"PORT", true},
                   {"NAME"},
                   {"ADDRESS"},
                   {"STATE"},
                   {"RATE", true},
                   {"DELAY", true},
                   {"LOSS", true},
                   {"RX FRAMES", true},
                   {"RX PAYLOAD", true},
                   {"TX FRAMES", true},
                   {"TX PAYLOAD", true},
                   {"LOST", true}});
  for (const PortStatus& port : one.ports) {
    const std::uint64_t lost = lost_at(port);
    table.add({std::uint64_t{port.id.value()},
               port.name,
               port.kind == net::PortKind::kHost ? port.address.to_string() : "-",
               state_cell(port),
               net::to_text(port.link.rate),
               net::to_text(port.link.delay),
               loss_of(port),
               port.rx.frames,
               port.rx.payload_bytes,
               port.tx.frames,
               port.tx.payload_bytes,
               {lost, lost == 0 ? Style::kPlain : Style::kAlarm}});
  }
  return styled(one.name, Style::kTitle, colour) + ": " + count_of(one.ports.size(), "port") +
         ", " + count_of(one.groups.size(), "group") + ", " +
         count_of(one.tombstones, "tombstone") + "\n" + table.to_text(colour);
}

std::string name_text(const HostNames& hosts, wire::Ipv4 address) {
  return address.is_unset() ? "none yet" : printable(hosts.of(address));
}

// `all`: if no member is waited for.
std::string waiting_text(const WaitedFor& late, const char* all, bool colour) {
  if (late.names.empty()) return styled(all, Style::kGood, colour);
  return styled(
      "waiting for " + first_few(late.names) + " (" + count_of(late.packets, "packet") + ")",
      Style::kAlarm, colour);
}

// "source h0; waiting for h2 (12 packets); h1 waits for its turn"
std::string situation_text(const FabricStatus& status, const fabric::GroupView& group,
                           const HostNames& hosts, bool colour) {
  const WaitedFor late = waited_for(status, group.id);
  if (group.reduction) return waiting_text(late, "all have contributed", colour);
  std::string text = "source " + name_text(hosts, group.source) + "; " +
                     waiting_text(late, "all have acknowledged", colour);
  const wire::Ipv4 next = next_source(status, group.id);
  if (!next.is_unset()) text += "; " + name_text(hosts, next) + " waits for its turn";
  return text;
}

// One group's tree: switches as branches, hosts as leaves, from the switch by which the data
// enters.
class GroupTree {
 public:
  GroupTree(const FabricStatus& status, wire::McstId id)
      : status_(status),
        id_(id),
        table_({{"TREE"}, {"QPN", true}, {"ACKED", true}, {"LAG", true}, {"ROLE"}}) {}

  std::string to_text(const SwitchStatus& root, bool colour) {
    add_switch(root, "", root.name);
    return table_.to_text(colour);
  }

 private:
  void add_switch(const SwitchStatus& one, const std::string& indent, const std::string& label) {
    visited_.insert(one.name);
    const fabric::GroupView* group = nullptr;
    for (const fabric::GroupView& candidate : one.groups) {
      if (candidate.id == id_) group = &candidate;
    }
    if (label == one.name) table_.add({label, "", "", "", ""});
    if (group == nullptr) return;
    std::vector<const fabric::PathView*> shown;
    for (const fabric::PathView& path : group->paths) {
      if (path.is_host || !visited_.contains(neighbour_name(path.name))) shown.push_back(&path);
    }
    for (const fabric::PathView* path : shown) {
      const bool last = path == shown.back();
      add_path(*path, group->reduction ? "member" : "receiver", indent + (last ? "└─ " : "├─ "));
      if (path->is_host) continue;
      for (const SwitchStatus& next : status_.switches) {
        if (next.name != neighbour_name(path->name) || visited_.contains(next.name)) continue;
        add_switch(next, indent + (last ? "   " : "│  "), "");
      }
    }
  }

  // ", region 7 (4096 bytes)"
  static std::string regions_text(const std::vector<fabric::RegionView>& regions) {
    std::vector<std::string> texts;
    for (const fabric::RegionView& region : regions) {
      texts.push_back("region " + std::to_string(region.number) + " (" +
                      count_of(region.length, "byte") + ")");
    }
    return texts.empty() ? "" : ", " + first_few(texts);
  }

  // `host`: the role of one that is not the source.
  void add_path(const fabric::PathView& path, const char* host, const std::string& branch) {
    std::string role = path.is_source ? "source" : path.is_host ? host : "switch";
    if (path.towards_leader) role += path.is_host ? ", leader" : ", towards the leader";
    if (path.is_worst) role += ", worst path";
    role += regions_text(path.regions);
    const Style style = path.lag == 0 ? Style::kPlain : Style::kAlarm;
    table_.add({branch + path.name,
                path.is_host ? hex24(path.qpn.value()) : "-",
                path.is_source ? "-" : hex24(path.acked.value()),
                {std::uint64_t{path.lag}, style},
                role});
  }

  const FabricStatus& status_;
  const wire::McstId id_;
  std::set<std::string> visited_;
  TextTable table_;
};

// Each switch refuses for its own hosts.
std::string refusals_text(const FabricStatus& status, wire::McstId id, const HostNames& hosts,
                          bool colour) {
  std::string text;
  for (const SwitchStatus& one : status.switches) {
    for (const fabric::GroupView& view : one.groups) {
      if (view.id != id || !view.refused) continue;
      const fabric::WriteRefusal& r = *view.refused;
      std::string last = "WRITEs refused: " + std::to_string(r.count) + ", the last one ";
      const std::string bytes = "of " + count_of(r.length, "byte");
      last += r.by_nic ? "by the NIC of " + name_text(hosts, r.host)
              : view.write_mode == "per-request"
                  ? bytes + ", more than was announced for " + name_text(hosts, r.host)
                  : bytes + " at offset " + std::to_string(r.offset) + " of region " +
                        std::to_string(r.region) + " of " + name_text(hosts, r.host);
      text += "  " + styled(last, Style::kAlarm, colour) + "\n";
    }
  }
  return text;
}

// "Window: 63 packets, by the queues of leaf1 before h2, leaf1 before h3". The least of all switches
// is the whole group's. No queue is named if losses make it smaller than every queue's share.
std::string window_text(const FabricStatus& status, wire::McstId id) {
  const auto narrow = [](std::uint32_t& least, std::uint32_t window) {
    if (window != 0 && (least == 0 || window < least)) least = window;
  };
  std::uint32_t announced = 0, least = 0;
  const auto for_each_view = [&](auto&& f) {
    for (const SwitchStatus& one : status.switches) {
      for (const fabric::GroupView& view : one.groups) {
        if (view.id == id) f(one, view);
      }
    }
  };
  for_each_view([&](const SwitchStatus&, const fabric::GroupView& view) {
    narrow(announced, view.window);
    for (const fabric::PathView& path : view.paths) narrow(least, path.window);
  });
  if (announced == 0) return "Window: no limit is known";
  if (announced < least) {
    return "Window: " + count_of(announced, "packet") + ", while packets are lost";
  }
  std::vector<std::string> places;
  for_each_view([&](const SwitchStatus& one, const fabric::GroupView& view) {
    for (const fabric::PathView& path : view.paths) {
      if (path.window == least) places.push_back(one.name + " before " + path.name);
    }
  });
  return "Window: " + count_of(announced, "packet") + ", by the " +
         (places.size() == 1 ? "queue" : "queues") + " of " + first_few(places);
}

// ". Packets of 1024 bytes, by port h2 at s0"
std::string mtu_text(const FabricStatus& status, const fabric::GroupView& group) {
  if (group.path_mtu == 0) return {};
  const std::string text = ". Packets of " + std::to_string(group.path_mtu) + " bytes";
  for (const SwitchStatus& one : status.switches) {
    for (const fabric::GroupView& view : one.groups) {
      if (view.id != group.id || view.mtu_limit.empty()) continue;
      return text + ", by " + printable(view.mtu_limit) + " at " + printable(one.name);
    }
  }
  return text;
}

std::string held_nak_text(const fabric::GroupView& group) {
  if (!group.held_nak) return {};
  return ", a NAK for " + hex24(group.held_nak->value()) +
         " waits until all have what is before it";
}

// "Reduction: 7 units with results, 2 under way of 64 at most. Units of up to 1024 bytes"
std::string reduction_text(const fabric::ReductionView& reduction) {
  return "Reduction: " + count_of(reduction.results, "unit") + " with results, " +
         std::to_string(reduction.newest - reduction.results) + " under way of " +
         std::to_string(reduction.window) + " at most. Units of up to " +
         std::to_string(reduction.unit) + " bytes";
}

std::string group_text(const FabricStatus& status, const SwitchStatus& root,
                       const fabric::GroupView& group, const HostNames& hosts, bool colour) {
  std::string text = styled(group.id.to_string(), Style::kTitle, colour) + "  epoch " +
                     std::to_string(group.epoch) + ", " +
                     (group.active ? "active" : "being registered") + "; leader " +
                     name_text(hosts, group.leader) + ", " +
                     situation_text(status, group, hosts, colour) + "\n";
  text += "  PSN: start " + hex24(group.start.value()) + ", turn " + hex24(group.base.value()) +
          ", sent " + hex24(group.sent.value()) + ", acknowledged " +
          hex24(group.acknowledged.value()) + held_nak_text(group) +
          ". Data: " + count_of(group.data_packets, "packet") + ", " +
          count_of(group.data_bytes, "byte") + ", " + std::to_string(group.copies) +
          (group.copies == 1 ? " copy" : " copies") +
          ". Table: " + count_of(group.table_bytes, "byte") + " in " + printable(root.name) +
          ", and " + count_of(group.beside_bytes, "byte") + " beside it";
  // A reduction group's switches pace its members, and forward no CNP.
  if (!group.reduction) text += ". CNPs: " + group.cnp_policy;
  text += (group.write_mode == "regions" ? "" : ". WRITEs: " + group.write_mode) + "\n";
  if (group.reduction) text += "  " + reduction_text(*group.reduction) + "\n";
  text += "  " + window_text(status, group.id) + mtu_text(status, group) + "\n";
  text += refusals_text(status, group.id, hosts, colour);
  return text + GroupTree(status, group.id).to_text(root, colour);
}

// Calls f(switch by which the data enters, its view of the group) for every group.
template <typename F>
void for_each_group(const FabricStatus& status, F&& f) {
  std::set<wire::Ipv4> seen;
  for (const SwitchStatus& one : status.switches) {
    for (const fabric::GroupView& group : one.groups) {
      if (!seen.insert(group.id).second) continue;
      const SwitchStatus& root = *tree_root(status, group.id);
      for (const fabric::GroupView& view : root.groups) {
        if (view.id == group.id) f(root, view);
      }
    }
  }
}

std::string receivers_text(const fabric::SenderGroupView& group) {
  std::string text;
  for (const fabric::SenderReceiverView& one : group.receivers) {
    text += (text.empty() ? "" : ", ") + one.host.to_string() + " (qp " + hex24(one.qpn.value());
    if (!one.regions.empty()) text += ", " + count_of(one.regions.size(), "region");
    if (group.merges && !one.is_known) text += ", unknown since this switch started";
    if (one.lag > 0) text += ", lags by " + count_of(one.lag, "packet");
    text += ")";
  }
  return text;
}

// "s0: merges feedback, 3 ways by a rule of 3 replicas; 12 packets, 36 copies; 59 bytes; to ..."
std::string record_text(const SwitchStatus& at, const fabric::SenderGroupView& group) {
  std::string text = "  " + printable(at.name) + ": ";
  if (group.merges) text += "merges feedback, ";
  text += group.replicas > 0 ? "a rule of " + count_of(group.replicas, "replica")
                             : std::string("no rule, data goes on as it is");
  text += "; " + count_of(group.data_packets, "packet") + ", " + std::to_string(group.copies) +
          (group.copies == 1 ? " copy" : " copies") + "; table " +
          count_of(group.rule_bytes + group.merge_bytes, "byte");
  return text + "; receivers " + receivers_text(group) + "\n";
}

std::string sender_groups_text(const FabricStatus& status, bool colour) {
  std::map<std::pair<wire::Ipv4, wire::Qpn>, std::string> groups;
  for (const SwitchStatus& one : status.switches) {
    for (const fabric::SenderGroupView& group : one.sender_groups) {
      groups[{group.sender, group.virtual_qpn}] += record_text(one, group);
    }
  }
  std::string text;
  for (const auto& [name, records] : groups) {
    const std::string title = name.first.to_string() + " to " + hex24(name.second.value());
    text += styled(title, Style::kTitle, colour) + "  sender group\n" + records;
  }
  return text;
}

std::string groups_text(const FabricStatus& status, bool colour) {
  const HostNames hosts(status);
  std::string text;
  for_each_group(status, [&](const SwitchStatus& root, const fabric::GroupView& view) {
    text += group_text(status, root, view, hosts, colour);
  });
  text += sender_groups_text(status, colour);
  return text.empty() ? "no groups\n" : text;
}

// Readings that are not 0, with their places.
class CounterRows {
 public:
  void add(const ReadingInfo& reading, std::uint64_t value, const std::string& where) {
    if (value == 0) return;
    Row& row = rows_[reading.full_name];
    row.is_drop = reading.is_drop();
    if (reading.listing != Listing::kPart) row.total = reading.combine(row.total, value);
    if (where.empty()) return;
    row.where += (row.where.empty() ? "" : ", ") + where + " " + std::to_string(value);
  }
  bool is_empty() const { return rows_.empty(); }
  std::string to_text(const std::string& title, bool colour) const {
    TextTable table({{"READING"}, {"TOTAL", true}, {"WHERE"}});
    for (const auto& [name, row] : rows_) {
      const Style style = row.is_drop ? Style::kAlarm : Style::kPlain;
      table.add({std::string(name), {row.total, style}, row.where});
    }
    return styled(title, Style::kTitle, colour) + "\n" + table.to_text(colour);
  }

 private:
  struct Row {
    std::uint64_t total = 0;
    bool is_drop = false;
    std::string where;
  };
  std::map<std::string_view, Row> rows_;
};

std::string counters_text(const FabricStatus& status, bool colour) {
  CounterRows of_fabric;
  for (const auto& reading : readings<FabricStatus>())
    of_fabric.add(reading, reading.of(status), "");
  std::string text = of_fabric.is_empty() ? "" : of_fabric.to_text("fabric", colour);
  for (const SwitchStatus& one : status.switches) {
    CounterRows rows;
    for_each_value(one, [&](const ReadingInfo& reading, std::uint64_t value,
                            const std::string& where, bool) { rows.add(reading, value, where); });
    text += rows.is_empty() ? styled(one.name, Style::kTitle, colour) + ": all counters are 0\n"
                            : rows.to_text(one.name, colour);
  }
  return text;
}

}  // namespace

std::string to_text(const FabricStatus& status, View view, bool colour) {
  if (view == View::kGroups) return groups_text(status, colour);
  if (view == View::kCounters) return counters_text(status, colour);
  std::string text = "fabric of pid " + std::to_string(status.pid) + ", up " +
                     decimal(status.uptime_seconds) + " s, path MTU " + std::to_string(status.mtu) +
                     ", ICRC " + (status.icrc_always ? "always" : "deferred");
  if (status.refused_users != 0) text += ", " + count_of(status.refused_users, "user") + " refused";
  text += "\n";
  for (const SwitchStatus& one : status.switches) text += ports_text(one, colour);
  return text;
}

std::string waiting_lines(const FabricStatus& status) {
  const HostNames hosts(status);
  std::string text;
  for_each_group(status, [&](const SwitchStatus&, const fabric::GroupView& view) {
    text += view.id.to_string() + "  " + situation_text(status, view, hosts, false) + "\n";
  });
  return text.empty() ? "no groups\n" : text;
}

}  // namespace cepheus::live
