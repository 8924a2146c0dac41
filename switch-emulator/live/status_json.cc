#include <nlohmann/json.hpp>

#include "switch-emulator/live/json_values.h"
#include "switch-emulator/live/readings_json.h"
#include "switch-emulator/live/sender_group_status.h"
#include "switch-emulator/live/status.h"

namespace cepheus::live {
namespace {

using nlohmann::json;

json link_to_json(const net::LinkConfig& link) {
  return {{"rate_bps", link.rate.bits_per_second},
          {"delay_ns", link.delay.count()},
          {"queue_bytes", link.queue_bytes},
          {"loss", link.loss},
          {"duplicate", link.duplicate},
          {"reorder", link.reorder},
          {"reorder_by_ns", link.reorder_by.count()},
          {"corrupt", link.corrupt},
          {"seed", link.seed}};
}

net::LinkConfig link_from_json(const json& in) {
  net::LinkConfig link;
  link.rate.bits_per_second = in.at("rate_bps");
  link.delay = wire::Duration(in.at("delay_ns").get<std::int64_t>());
  link.queue_bytes = in.at("queue_bytes");
  link.loss = in.at("loss");
  link.duplicate = in.at("duplicate");
  link.reorder = in.at("reorder");
  link.reorder_by = wire::Duration(in.at("reorder_by_ns").get<std::int64_t>());
  link.corrupt = in.at("corrupt");
  link.seed = in.at("seed");
  return link;
}

template <typename Object>
json with_readings(json out, const Object& object) {
  write_readings(object, out);
  return out;
}

json port_to_json(const PortStatus& port) {
  json out = {{"id", port.id.value()},
              {"name", port.name},
              {"kind", port.kind == net::PortKind::kHost ? "host" : "switch"},
              {"address", port.address.to_string()},
              {"attached", port.attached},
              {"client_pid", port.client_pid},
              {"reserved", port.reserved},
              {"reserved_by", port.reserved_by},
              {"link", link_to_json(port.link)},
              {"in_loss", port.in_loss},
              {"in_up", port.in_up},
              {"out_up", port.out_up},
              {"dark", port.dark},
              {"in", with_readings(json::object(), port.in)},
              {"out", with_readings(json::object(), port.out)}};
  return with_readings(std::move(out), port);
}

PortStatus port_from_json(const json& in) {
  PortStatus port;
  port.id = wire::PortId(in.at("id").get<std::uint16_t>());
  port.name = in.at("name");
  port.kind = in.at("kind") == "host" ? net::PortKind::kHost : net::PortKind::kSwitch;
  port.address = address_from_json(in.at("address"));
  port.attached = in.at("attached");
  port.client_pid = in.at("client_pid");
  port.reserved = in.at("reserved");
  port.reserved_by = in.at("reserved_by");
  port.link = link_from_json(in.at("link"));
  port.in_loss = in.at("in_loss");
  port.in_up = in.at("in_up");
  port.out_up = in.at("out_up");
  port.dark = in.value("dark", false);
  read_readings(in.at("in"), port.in);
  read_readings(in.at("out"), port.out);
  read_readings(in, port);
  return port;
}

json path_to_json(const fabric::PathView& path) {
  json regions = json::array();
  for (const fabric::RegionView& region : path.regions) {
    regions.push_back({{"number", region.number},
                       {"virtual_address", region.virtual_address},
                       {"length", region.length}});
  }
  return {{"port", path.port.value()},
          {"name", path.name},
          {"is_host", path.is_host},
          {"host", path.host.to_string()},
          {"qpn", path.qpn.value()},
          {"acked", path.acked.value()},
          {"lag", path.lag},
          {"turns_offset", path.turns_offset},
          {"is_source", path.is_source},
          {"towards_leader", path.towards_leader},
          {"regions", std::move(regions)}};
}

fabric::RegionView region_from_json(const json& in) {
  return {in.at("number"), in.at("virtual_address"), in.at("length")};
}

// null: no WRITE was refused.
json refusal_to_json(const std::optional<fabric::WriteRefusal>& refusal) {
  if (!refusal) return nullptr;
  return {{"host", refusal->host.to_string()}, {"region", refusal->region},
          {"offset", refusal->offset},         {"length", refusal->length},
          {"by_nic", refusal->by_nic},         {"count", refusal->count}};
}

std::optional<fabric::WriteRefusal> refusal_from_json(const json& in) {
  if (in.is_null()) return std::nullopt;
  return fabric::WriteRefusal{address_from_json(in.at("host")),
                              in.at("region"),
                              in.at("offset"),
                              in.at("length"),
                              in.at("by_nic"),
                              in.at("count")};
}

fabric::PathView path_from_json(const json& in) {
  fabric::PathView path;
  path.port = wire::PortId(in.at("port").get<std::uint16_t>());
  path.name = in.at("name");
  path.is_host = in.at("is_host");
  path.host = address_from_json(in.at("host"));
  path.qpn = wire::Qpn(in.at("qpn").get<std::uint32_t>());
  path.acked = wire::Psn(in.at("acked").get<std::uint32_t>());
  path.lag = in.at("lag");
  path.turns_offset = in.at("turns_offset");
  path.is_source = in.at("is_source");
  path.towards_leader = in.at("towards_leader");
  for (const json& region : in.at("regions")) path.regions.push_back(region_from_json(region));
  return path;
}

json group_to_json(const FabricStatus& status, const fabric::GroupView& group) {
  json paths = json::array();
  for (const fabric::PathView& path : group.paths) paths.push_back(path_to_json(path));
  const WaitedFor late = waited_for(status, group.id);
  json out = {{"id", group.id.to_string()},
              {"epoch", group.epoch},
              {"leader", group.leader.to_string()},
              {"active", group.active},
              {"source_change", group.source_change},
              {"write_mode", group.write_mode},
              {"write_refused", refusal_to_json(group.refused)},
              {"start", group.start.value()},
              {"base", group.base.value()},
              {"sent", group.sent.value()},
              {"acknowledged", group.acknowledged.value()},
              {"source", group.source.to_string()},
              {"next_source", group.next_source.to_string()},
              {"nak_held", group.nak_held},
              {"waiting_for", {{"names", late.names}, {"packets", late.packets}}},
              {"paths", std::move(paths)}};
  return with_readings(std::move(out), group);
}

fabric::GroupView group_from_json(const json& in) {
  fabric::GroupView group;
  group.id = address_from_json(in.at("id"));
  group.epoch = in.at("epoch");
  group.leader = address_from_json(in.at("leader"));
  group.active = in.at("active");
  group.source_change = in.at("source_change");
  group.write_mode = in.at("write_mode");
  group.refused = refusal_from_json(in.at("write_refused"));
  group.start = wire::Psn(in.at("start").get<std::uint32_t>());
  group.base = wire::Psn(in.at("base").get<std::uint32_t>());
  group.sent = wire::Psn(in.at("sent").get<std::uint32_t>());
  group.acknowledged = wire::Psn(in.at("acknowledged").get<std::uint32_t>());
  group.source = address_from_json(in.at("source"));
  group.next_source = address_from_json(in.at("next_source"));
  group.nak_held = in.at("nak_held");
  for (const json& path : in.at("paths")) group.paths.push_back(path_from_json(path));
  read_readings(in, group);
  return group;
}

json switch_to_json(const FabricStatus& status, const SwitchStatus& one) {
  json ports = json::array(), groups = json::array(), sender_groups = json::array();
  for (const auto& group : one.sender_groups) sender_groups.push_back(sender_group_to_json(group));
  for (const PortStatus& port : one.ports) ports.push_back(port_to_json(port));
  for (const fabric::GroupView& group : one.groups) groups.push_back(group_to_json(status, group));
  json out = {{"name", one.name},
              {"ports", std::move(ports)},
              {"groups", std::move(groups)},
              {"sender_groups", std::move(sender_groups)}};
  return with_readings(std::move(out), one);
}

SwitchStatus switch_from_json(const json& in) {
  SwitchStatus one;
  one.name = in.at("name");
  for (const json& port : in.at("ports")) one.ports.push_back(port_from_json(port));
  for (const json& group : in.at("groups")) one.groups.push_back(group_from_json(group));
  for (const json& group : in.at("sender_groups")) {
    one.sender_groups.push_back(sender_group_from_json(group));
  }
  read_readings(in, one);
  return one;
}

}  // namespace

json to_json(const FabricStatus& status) {
  json switches = json::array();
  for (const SwitchStatus& one : status.switches) switches.push_back(switch_to_json(status, one));
  json out = {{"pid", status.pid},
              {"uptime_seconds", status.uptime_seconds},
              {"mtu", status.mtu},
              {"icrc_always", status.icrc_always},
              {"placement", status.placement},
              {"switches", std::move(switches)}};
  return with_readings(std::move(out), status);
}

wire::Result<FabricStatus> status_from_json(const json& in) try {
  FabricStatus status;
  status.pid = in.at("pid");
  status.uptime_seconds = in.at("uptime_seconds");
  status.mtu = in.at("mtu");
  status.icrc_always = in.at("icrc_always");
  status.placement = in.value("placement", "");
  read_readings(in, status);
  for (const json& one : in.at("switches")) status.switches.push_back(switch_from_json(one));
  return status;
} catch (const json::exception& e) {
  return wire::fail(wire::ErrorCode::kInvalid,
                    std::string("not a fabric's status, or another version's (") + e.what() + ")");
}

}  // namespace cepheus::live
