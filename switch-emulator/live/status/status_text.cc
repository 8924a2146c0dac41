// Three views: ports with their switch's counts, groups (group_text.h), readings above 0 with their
// places. A group appears once, seen from the switch where its data enters.
//
// Names are made printable, and long lists show their first four. Colour marks what needs
// attention: losses, lags, cut and dark links.
#include <map>
#include <set>

#include "net/units.h"
#include "switch-emulator/live/status/group_text.h"
#include "switch-emulator/live/status/readings.h"
#include "switch-emulator/live/status/status.h"
#include "switch-emulator/live/status/text_table.h"

namespace cepheus::live {
namespace {

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
