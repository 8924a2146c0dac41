// What a fabric tells about itself: a plain snapshot, its JSON and its text. cepheusctl prints it,
// tests read it. Every number that is counted or measured is a line of the table of readings
// (readings.h).
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "net/link.h"
#include "switch-emulator/engine/switch.h"
#include "switch-emulator/live/traffic.h"
#include "switch-emulator/ports/access_port.h"
#include "wire/result.h"

namespace cepheus::live {

struct PortStatus {
  wire::PortId id;
  std::string name;  // what is behind it
  net::PortKind kind = net::PortKind::kHost;
  wire::Ipv4 address;
  bool attached = false;         // a client holds it, or a trunk
  std::int64_t client_pid = 0;   // 0: none
  bool reserved = false;         // kept for the processes of a job
  std::int64_t reserved_by = 0;  // its launcher; 0: none, or it can't be seen from the fabric
  net::LinkConfig link;          // towards the port
  double in_loss = 0;            // of the link into the switch, whose other parameters are the same
  bool in_up = true, out_up = true;  // false: cut
  bool dark = false;                 // a trunk that nothing comes from, though it is not cut
  net::LinkCounters in, out;         // links into and out of the switch
  // RoCE payload of first transmissions and repeats alike: what "the root's link carried" means.
  Traffic rx, tx;
  LinkSideDrops drops;
  QueueReading queue;
  wire::CounterValues<fabric::Counter> engine;
  fabric::PortCounters access;  // of the host's port
};
struct SwitchStatus {
  std::string name;
  std::vector<PortStatus> ports;
  std::vector<fabric::GroupView> groups;
  std::vector<fabric::SenderGroupView> sender_groups;
  std::size_t tombstones = 0;
  wire::CounterValues<fabric::Counter> engine;  // its ports' together
  fabric::PortCounters one_armed;               // of the one-armed interface
};
struct FabricStatus {
  std::int64_t pid = 0;
  double uptime_seconds = 0;
  std::uint32_t mtu = 0;
  bool icrc_always = false;
  std::uint64_t refused_users = 0;  // connections of users who may not do what they asked for
  std::vector<SwitchStatus> switches;
};

// The switch a group's data enters by (any of its switches while nobody has sent), or null.
const SwitchStatus* tree_root(const FabricStatus& status, wire::McstId group);
// Hosts' names by their addresses.
class HostNames {
 public:
  explicit HostNames(const FabricStatus& status);
  // The address itself where no host has it; empty for none.
  std::string of(wire::Ipv4 address) const;

 private:
  std::map<wire::Ipv4, std::string> names_;
};

// Port "s1#2" leads to switch "s1" (net/topology.h).
std::string neighbour_name(const std::string& port_name);

// Who holds a group up: the paths furthest behind, or nobody if every path has acknowledged all
// that was sent. A trunk that is furthest behind is followed to the host behind it, if that switch
// knows of one.
struct WaitedFor {
  std::vector<std::string> names;
  std::uint32_t packets = 0;
};
WaitedFor waited_for(const FabricStatus& status, wire::McstId group);

// The host that waits until all have acknowledged and it may send; unset if nobody does.
wire::Ipv4 next_source(const FabricStatus& status, wire::McstId group);

// Rates in bit/s, times in ns, PSNs and QPNs as numbers; every group says "waiting_for".
nlohmann::json to_json(const FabricStatus& status);
// What to_json() wrote, perhaps by another version: unknown keys are skipped, missing ones are an
// error.
wire::Result<FabricStatus> status_from_json(const nlohmann::json& json);
// Of the fabric at this socket. The errors are ask()'s and status_from_json()'s.
wire::Result<FabricStatus> ask_status(const std::string& fabric_socket);
enum class View { kPorts, kGroups, kCounters };
// A table for people; `colour` only if the reader is a terminal.
std::string to_text(const FabricStatus& status, View view, bool colour);
// A line for each group: who sends, who is waited for, who waits for its turn.
std::string waiting_lines(const FabricStatus& status);

// Counters since a moment: "reset" without touching the counters themselves, which engines and
// links own. Takes what `baseline` counted off `status`; gauges stay. Both are of the same fabric, and
// `baseline` is the older one.
void subtract(FabricStatus& status, const FabricStatus& baseline);

}  // namespace cepheus::live
