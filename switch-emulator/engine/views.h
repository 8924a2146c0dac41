// For administrators (cepheusctl): views of groups, and the sizes of their tables. PSNs are group
// PSNs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "switch-emulator/engine/group/write_refusal.h"
#include "wire/mrp.h"
#include "wire/types.h"

namespace cepheus::net {
struct SwitchConfig;
}

namespace cepheus::fabric {

using wire::Instant;
using wire::Ipv4;
using wire::McstId;
using wire::PortId;
using wire::Psn;
using wire::Qpn;

struct RegionView {
  std::uint16_t number = 0;
  std::uint64_t virtual_address = 0, length = 0;
};
// Others wait for a path of a reduction group: its oldest unit that they have contributed to.
struct LateView {
  std::uint64_t unit = 0;
  Instant since{};  // of the first contribution to it at this switch
  // That contribution (arithmetic/operation.h).
  std::uint8_t operation = 0, type = 0;
  std::uint16_t bytes = 0;
};
struct PathView {
  PortId port;
  std::string name;  // port's name
  bool is_host = false;
  Ipv4 host;
  Qpn qpn;
  Psn acked;
  std::uint32_t lag =
      0;  // packets between the last sent and this path's acknowledgement (0 for the source)
  std::uint32_t turns_offset = 0;  // T: packets of this host's finished turns
  bool is_source = false;
  bool is_worst = false;  // only the CNPs of this path reach the source
  bool towards_leader = false;
  std::uint32_t window = 0;         // packets: the group's share of this port's queue; 0: unlimited
  std::vector<RegionView> regions;  // published for WRITEs
  std::optional<LateView> late;
};
// Units of a reduction group; GroupView::start is the PSN of unit 0.
struct ReductionView {
  std::uint16_t unit = 0, window = 0;  // bytes, units
  bool is_root = false;
  // Units that some member has contributed to, all members here, and those with a result.
  std::uint64_t newest = 0, complete = 0, results = 0;
  // The first contribution here to the oldest unit without a result. Others may be late to it behind
  // another switch.
  std::optional<Instant> waits_since = {};
  std::string failure = {};  // why the leader has to end the group; empty: it goes on
  bool is_flat = false;      // values are combined in pairs by the members' addresses
};
struct GroupView {
  McstId id;
  std::uint16_t epoch = 0;
  Ipv4 leader;
  bool active = false;
  std::string source_change = "rebase";
  std::string write_mode = "regions";
  std::string cnp_policy = "worst-path";
  std::uint32_t path_mtu = 0;  // payload bytes of a packet; 0: not known yet
  std::string mtu_limit;       // the port or device that limits it, if this switch knows it
  std::optional<WriteRefusal> refused;  // the last one
  std::optional<ReductionView> reduction;
  Psn start, base, sent, acknowledged;
  Ipv4 source;
  Ipv4 next_source;             // waits for its turn; unset: none does
  std::optional<Psn> held_nak;  // until all have the packets before it
  // Packets that a source may have under way, as this switch last announced it; 0: any number. At
  // the leader's switch it is the whole group's.
  std::uint32_t window = 0;
  std::vector<PathView> paths;
  std::uint64_t data_packets = 0, data_bytes = 0, copies = 0;
  std::size_t table_bytes = 0, beside_bytes = 0;  // TableBytes
};

// A sender group (MC-RDMA's multicast; docs/protocol.md, "Sender groups") at one switch.
struct SenderReceiverView {
  Ipv4 host;
  Qpn qpn;
  bool is_known = false;  // acked is valid, at the sender's switch
  Psn acked;              // ... by feedback
  std::uint32_t lag = 0;  // packets between the last sent and `acked`
  std::vector<RegionView> regions;
};
struct SenderGroupView {
  Ipv4 sender, alias;
  Ipv4 addressed;  // the destination of the data; a switch may have several records of one group
  Qpn virtual_qpn, sender_qpn;
  std::uint16_t epoch = 0;
  bool merges = false;                        // the sender is at this switch
  std::size_t branches = 0;                   // branches of its data here
  std::size_t replicas = 0;                   // of its rule; 0: no rule, the data goes on unchanged
  std::vector<SenderReceiverView> receivers;  // behind this switch
  std::uint64_t data_packets = 0, copies = 0;
  std::size_t rule_bytes = 0, merge_bytes = 0;  // in a hardware table
};

// A group's memory in a switch, by field: {"path_index", n}, {"path.ack", n}, ... Their sum is all
// memory that the switch allocates for it, except for overhead of the allocator and of map nodes.
// Frames at the gates are in a store of all groups (held_frames.h).
struct TableBytes {
  using Rows = std::vector<std::pair<std::string, std::size_t>>;
  Rows table;   // in a hardware table
  Rows beside;  // evidence about paths, ends of messages for the MSN, regions, the roster, and what
                // else registration keeps

  static std::size_t sum(const Rows& rows);
};

// A group with paths to the highest of a switch's ports.
struct TableShape {
  std::size_t ports, paths;  // at least 2 paths, if there are `members`
  std::size_t members = 0;   // 0: one at each path; else all paths are trunks to these members
  bool active = true;        // registered, and activated
  std::optional<wire::MrpReduction> reduction = {};  // valid
};

class GroupTable;
struct GroupEntry;
struct GroupInstance;
struct SenderGroup;

GroupView view_of(const net::SwitchConfig& config, const GroupTable& groups,
                  const GroupEntry& entry);
SenderGroupView view_of(const SenderGroup& group);

// Memory outside named fields (padding, and vectors' own pointers) is a row of its own, so that the
// rows add up.
TableBytes bytes_of(const GroupInstance& table);
TableBytes bytes_of(const TableShape& shape);

}  // namespace cepheus::fabric
