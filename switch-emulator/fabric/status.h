// What a fabric tells about itself: a plain snapshot, its JSON and its text. cepheusctl prints it, tests read it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "switch-emulator/engine/switch.h"
#include "switch-emulator/fabric/link.h"

namespace cepheus::fabric {

struct PortStatus {
  PortId id;
  std::string name;                // what is behind it
  PortKind kind = PortKind::kHost;
  Ipv4 address;
  bool attached = false;           // a client holds it, or a trunk
  std::int64_t client_pid = 0;     // 0: none
  LinkConfig link;                 // towards the port
  LinkCounters in, out;            // links into and out of the switch
  // RoCE payload bytes, first transmissions and repeats alike: what "the root's link carried" means.
  std::uint64_t rx_payload_bytes = 0, tx_payload_bytes = 0;
  std::uint64_t rx_frames = 0, tx_frames = 0, rx_bytes = 0, tx_bytes = 0;
  std::uint64_t dropped_egress_full = 0;  // the client does not read
  std::vector<std::pair<std::string, std::uint64_t>> counters;  // the engine's, those that are not 0
};
struct SwitchStatus {
  std::string name;
  std::vector<PortStatus> ports;
  std::vector<GroupView> groups;
  std::size_t tombstones = 0;
  std::vector<std::pair<std::string, std::uint64_t>> counters;  // sums, those that are not 0
};
struct FabricStatus {
  std::int64_t pid = 0;
  double uptime_seconds = 0;
  std::uint32_t mtu = 0;
  bool icrc_always = false;
  std::vector<SwitchStatus> switches;
};

nlohmann::json to_json(const FabricStatus& status);
enum class View { kPorts, kGroups, kCounters };
// A table for people; `colour` only if the reader is a terminal.
std::string to_text(const FabricStatus& status, View view, bool colour);

}  // namespace cepheus::fabric
