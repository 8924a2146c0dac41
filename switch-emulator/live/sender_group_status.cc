#include "switch-emulator/live/sender_group_status.h"

#include <cstdio>
#include <map>

#include "switch-emulator/live/json_values.h"
#include "switch-emulator/live/printable.h"
#include "switch-emulator/live/readings_json.h"
#include "switch-emulator/live/text_table.h"

namespace cepheus::live {
namespace {

using fabric::SenderGroupView;
using fabric::SenderReceiverView;
using nlohmann::json;

json receiver_to_json(const SenderReceiverView& receiver) {
  json regions = json::array();
  for (const fabric::RegionView& r : receiver.regions) {
    regions.push_back({{"number", r.number}, {"address", r.virtual_address}, {"length", r.length}});
  }
  return {{"host", receiver.host.to_string()},
          {"qpn", receiver.qpn.value()},
          {"known", receiver.is_known},
          {"acked", receiver.acked.value()},
          {"lag", receiver.lag},
          {"regions", std::move(regions)}};
}

SenderReceiverView receiver_from_json(const json& in) {
  SenderReceiverView receiver;
  receiver.host = address_from_json(in.at("host"));
  receiver.qpn = wire::Qpn(in.at("qpn").get<std::uint32_t>());
  receiver.is_known = in.at("known");
  receiver.acked = wire::Psn(in.at("acked").get<std::uint32_t>());
  receiver.lag = in.at("lag");
  for (const json& r : in.at("regions")) {
    receiver.regions.push_back({r.at("number"), r.at("address"), r.at("length")});
  }
  return receiver;
}

std::string hex(wire::Qpn qpn) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", qpn.value());
  return text;
}

std::string count_of(std::uint64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string receivers_text(const SenderGroupView& group) {
  std::string text;
  for (const SenderReceiverView& one : group.receivers) {
    text += (text.empty() ? "" : ", ") + one.host.to_string() + " (qp " + hex(one.qpn);
    if (!one.regions.empty()) text += ", " + count_of(one.regions.size(), "region");
    if (group.merges && !one.is_known) text += ", not heard since this switch began";
    if (one.lag > 0) text += ", lags by " + count_of(one.lag, "packet");
    text += ")";
  }
  return text;
}

// "s0: merges feedback, 3 ways by a rule of 3 replicas; 12 packets, 36 copies; 59 bytes; to ..."
std::string record_text(const SwitchStatus& at, const SenderGroupView& group) {
  std::string text = "  " + printable(at.name) + ": ";
  if (group.merges) text += "merges feedback, ";
  text += group.replicas > 0 ? "a rule of " + count_of(group.replicas, "replica")
                             : std::string("no rule, data goes on as it is");
  text += "; " + count_of(group.data_packets, "packet") + ", " + std::to_string(group.copies) +
          (group.copies == 1 ? " copy" : " copies") + "; table " +
          count_of(group.rule_bytes + group.merge_bytes, "byte");
  return text + "; receivers " + receivers_text(group) + "\n";
}

}  // namespace

json sender_group_to_json(const SenderGroupView& group) {
  json receivers = json::array();
  for (const SenderReceiverView& one : group.receivers) receivers.push_back(receiver_to_json(one));
  json out = {{"sender", group.sender.to_string()},
              {"alias", group.alias.to_string()},
              {"virtual_qpn", group.virtual_qpn.value()},
              {"sender_qpn", group.sender_qpn.value()},
              {"epoch", group.epoch},
              {"merges", group.merges},
              {"branches", group.branches},
              {"replicas", group.replicas},
              {"receivers", std::move(receivers)}};
  write_readings(group, out);
  return out;
}

SenderGroupView sender_group_from_json(const json& in) {
  SenderGroupView group;
  group.sender = address_from_json(in.at("sender"));
  group.alias = address_from_json(in.at("alias"));
  group.virtual_qpn = wire::Qpn(in.at("virtual_qpn").get<std::uint32_t>());
  group.sender_qpn = wire::Qpn(in.at("sender_qpn").get<std::uint32_t>());
  group.epoch = in.at("epoch");
  group.merges = in.at("merges");
  group.branches = in.at("branches");
  group.replicas = in.at("replicas");
  for (const json& one : in.at("receivers")) group.receivers.push_back(receiver_from_json(one));
  read_readings(in, group);
  return group;
}

std::string sender_groups_text(const FabricStatus& status, bool colour) {
  std::map<std::pair<wire::Ipv4, wire::Qpn>, std::string> groups;
  for (const SwitchStatus& one : status.switches) {
    for (const SenderGroupView& group : one.sender_groups) {
      groups[{group.sender, group.virtual_qpn}] += record_text(one, group);
    }
  }
  std::string text;
  for (const auto& [name, records] : groups) {
    const std::string title = name.first.to_string() + " to " + hex(name.second);
    text += styled(title, Style::kTitle, colour) + "  sender group\n" + records;
  }
  return text;
}

}  // namespace cepheus::live
