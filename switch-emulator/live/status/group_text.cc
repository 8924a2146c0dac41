// Numbers are those of the root's view. Windows, limits and refused WRITEs are taken from all
// switches. The tree visits each switch once.
#include "switch-emulator/live/status/group_text.h"

#include <set>

#include "switch-emulator/live/status/text_table.h"

namespace cepheus::live {
namespace {

std::string name_text(const HostNames& hosts, wire::Ipv4 address) {
  return address.is_unset() ? "none yet" : printable(hosts.of(address));
}

// `all`: if no member is waited for.
std::string waiting_text(const WaitedFor& late, const char* all, bool colour) {
  if (!late.failure.empty()) return styled("has failed: " + late.failure, Style::kAlarm, colour);
  if (late.names.empty()) return styled(all, Style::kGood, colour);
  return styled(
      "waiting for " + first_few(late.names) + " (" + count_of(late.packets, "packet") + ")",
      Style::kAlarm, colour);
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
  std::uint32_t announced = 0, least = 0;
  const auto for_each_view = [&](auto&& f) {
    for (const SwitchStatus& one : status.switches) {
      for (const fabric::GroupView& view : one.groups) {
        if (view.id == id) f(one, view);
      }
    }
  };
  for_each_view([&](const SwitchStatus&, const fabric::GroupView& view) {
    announced = wire::least_known(announced, view.window);
    for (const fabric::PathView& path : view.paths) least = wire::least_known(least, path.window);
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

// "Reduction: 7 units with results, 2 under way of 64 at most. Units of up to 1024 bytes. Flat"
std::string reduction_text(const fabric::GroupView& group) {
  const fabric::ReductionView& reduction = *group.reduction;
  return "Reduction: " + count_of(reduction.results, "unit") + " with results, " +
         std::to_string(reduction.newest - reduction.results) + " under way of " +
         std::to_string(reduction.window) + " at most. Units of up to " +
         std::to_string(reduction.unit) + " bytes" +
         (!group.active       ? ""
          : reduction.is_flat ? ". Flat"
                              : ". Not flat");
}

}  // namespace

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
  if (group.reduction) text += "  " + reduction_text(group) + "\n";
  text += "  " + window_text(status, group.id) + mtu_text(status, group) + "\n";
  text += refusals_text(status, group.id, hosts, colour);
  return text + GroupTree(status, group.id).to_text(root, colour);
}

}  // namespace cepheus::live
