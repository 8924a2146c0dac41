// The status of a fabric: a plain snapshot, its JSON and its text. cepheusctl prints it, tests read
// it. Every counted or measured number is a line of the table of readings (readings.h).
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "net/link.h"
#include "switch-emulator/engine/switch.h"
#include "switch-emulator/engine/views.h"
#include "switch-emulator/live/status/traffic.h"
#include "switch-emulator/ports/access_port.h"
#include "wire/result.h"

namespace cepheus::live {

struct PortStatus {
  wire::PortId id;
  std::string name;  // name of the neighbour
  net::PortKind kind = net::PortKind::kHost;
  wire::Ipv4 address;
  bool attached = false;         // a client holds it, or it is a trunk
  std::int64_t client_pid = 0;   // 0: none
  bool reserved = false;         // reserved for the processes of a job
  std::int64_t reserved_by = 0;  // its launcher; 0: none, or not visible from the fabric
  net::LinkConfig link;          // towards the port
  double in_loss = 0;            // of the link into the switch, whose other parameters are the same
  bool in_up = true, out_up = true;  // false: cut
  bool dark = false;                 // a trunk that is silent, though it is not cut
  net::LinkCounters in, out;         // links into and out of the switch
  // RoCE payload of first transmissions and retransmissions: the meaning of "the root's link
  // carried".
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
  wire::CounterValues<fabric::Counter> engine;  // totals of its ports
  fabric::PortCounters one_armed;               // of the one-armed interface
};
struct FabricStatus {
  std::int64_t pid = 0;
  double uptime_seconds = 0;
  wire::Instant now{};   // by the clock of its switches: no view of a switch is older
  wire::Duration utc{};  // the same time since 1970
  std::uint32_t mtu = 0;
  bool icrc_always = false;
  std::uint64_t refused_users = 0;  // connections of users without permission for their request
  std::vector<SwitchStatus> switches;
};

// The switch by which a group's data enters (any of its switches if no member has sent), or null.
const SwitchStatus* tree_root(const FabricStatus& status, wire::McstId group);
// Hosts' names by address.
class HostNames {
 public:
  explicit HostNames(const FabricStatus& status);
  // The address itself if no host has it; empty for none.
  std::string of(wire::Ipv4 address) const;

 private:
  std::map<wire::Ipv4, std::string> names_;
};

// Port "s1#2" leads to switch "s1" (net/topology.h).
std::string neighbour_name(const std::string& port_name);

// The lagging members of a group: those on the paths furthest behind, or none if every path has
// acknowledged all sent packets. A trunk that is furthest behind is followed to the hosts behind
// it, if that switch knows any. Of a reduction: all members that are late (late.h).
struct WaitedFor {
  std::vector<std::string> names;
  std::uint32_t packets = 0;
  wire::Duration late{};  // of a reduction
  std::string failure;    // why a reduction group has failed, so that nobody is late
};
WaitedFor waited_for(const FabricStatus& status, wire::McstId group);

// The host that waits until all have acknowledged, before it may send; unset if none does.
wire::Ipv4 next_source(const FabricStatus& status, wire::McstId group);

// Rates in bit/s, times in ns, PSNs and QPNs as numbers; every group has "waiting_for".
nlohmann::json to_json(const FabricStatus& status);
// Parses the output of to_json(), perhaps of another version: unknown keys are skipped, missing
// ones are an error.
wire::Result<FabricStatus> status_from_json(const nlohmann::json& json);
// Of the fabric at this socket. The errors are those of send_request() and status_from_json().
wire::Result<FabricStatus> request_status(const std::string& fabric_socket);
enum class View { kPorts, kGroups, kCounters };
// A table for people; `colour` only if the output is a terminal.
std::string to_text(const FabricStatus& status, View view, bool colour);
// A line for each group: its source, its lagging members, and the member that waits for its turn.
std::string waiting_lines(const FabricStatus& status);

// Counters since a moment: a reset that does not touch the counters themselves, which engines and
// links own. Subtracts the counters of `baseline` from `status`; gauges stay. Both are of the same
// fabric, and `baseline` is the older one.
void subtract(FabricStatus& status, const FabricStatus& baseline);

}  // namespace cepheus::live
