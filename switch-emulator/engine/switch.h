// One Cepheus switch without I/O: forwarding, registration, replication, bridging, feedback, source
// change.
//
//     on_packet(now, port, frame, actions)   a packet has arrived on a port
//     on_timer(now, actions)                 `deadline()` has passed (spurious calls are harmless)
//     on_port_up / on_port_down              a host or a neighbour came or went
//
// Packets leave through SwitchOutput::emits: copies share the payload of the frame that came in
// (Frame::external, Frame::ref), whose buffer stays the caller's. A frame that the source-change gate
// holds back has a reference of the engine's own on its buffer, from the PayloadStore. If the store
// has no room for it, the gate answers as one that is full. A payload that the engine itself has made
// (a long REGISTER) is external without a BufferRef: its bytes stay valid until the next call into
// the engine. docs/protocol.md states the rules, net/rules.def lists them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/switch_config.h"
#include "switch-emulator/engine/counters.h"
#include "switch-emulator/engine/payload_store.h"
#include "wire/frame.h"
#include "wire/mrp.h"
#include "wire/types.h"

namespace cepheus::fabric {

using wire::Duration;
using wire::Frame;
using wire::Instant;
using wire::Ipv4;
using wire::McstId;
using wire::PortId;
using wire::Psn;
using wire::Qpn;

using net::PortConfig;
using net::PortKind;
using net::Route;
using net::Rules;
using net::SourceChange;
using net::SwitchConfig;

// A frame to be sent. Its origin is the port of the frame that it is a copy of, or that it answers;
// what the switch sends on its own has none, and is charged to nobody.
struct Emit {
  Emit(PortId to, PortId from, const Frame& f) : port(to), origin(from), frame(f) {}
  PortId port, origin;
  Frame frame;
};

// Outputs of one engine call; the caller owns it, reads it, clears it and passes it again.
struct SwitchOutput {
  std::vector<Emit> emits;
  std::vector<HeldPayload> released;  // that emits refer to: clear() gives them back
  void clear() {
    emits.clear();
    released.clear();
  }
};

// What an administrator sees (cepheusctl). PSNs are group PSNs.

// A multicast WRITE that a member's regions did not allow.
struct WriteRefusal {
  Ipv4 host;                 // the member's
  std::uint32_t region = 0;  // as the source named it: number, offset, bytes
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  bool by_nic = false;  // the member's NIC refused what the switch had let through; the rest is 0
  std::uint64_t count = 0;  // so far
};
struct RegionView {
  std::uint16_t number = 0;
  std::uint64_t virtual_address = 0, length = 0;
};
struct PathView {
  PortId port;
  std::string name;  // port's name
  bool is_host = false;
  Ipv4 host;
  Qpn qpn;
  Psn acked;
  std::uint32_t lag =
      0;  // packets between what was sent and what this path acknowledged (0 for the source)
  std::uint32_t turns_offset = 0;  // T: packets of this host's finished turns
  bool is_source = false;
  bool is_worst = false;  // of all paths the source hears its CNPs alone
  bool towards_leader = false;
  std::vector<RegionView> regions;  // published for WRITEs
};
struct GroupView {
  McstId id;
  std::uint16_t epoch = 0;
  Ipv4 leader;
  bool active = false;
  std::string source_change = "rebase";
  std::string write_mode = "regions";
  std::string cnp_policy = "worst-path";
  std::optional<WriteRefusal> refused;  // the last one
  Psn start, base, sent, acknowledged;
  Ipv4 source;
  Ipv4 next_source;  // waits for its turn; unset: nobody does
  bool nak_held = false;
  std::vector<PathView> paths;
  std::uint64_t data_packets = 0, data_bytes = 0, copies = 0;
  std::size_t table_bytes = 0, beside_bytes = 0;  // TableBytes
};

// A sender group (MC-RDMA's multicast; docs/protocol.md, "Sender groups") at one switch.
struct SenderReceiverView {
  Ipv4 host;
  Qpn qpn;
  bool is_known = false;  // at the sender's switch, since that began
  Psn acked;              // ... by feedback; means something if known
  std::uint32_t lag = 0;  // packets between what was sent and that
  std::vector<RegionView> regions;
};
struct SenderGroupView {
  Ipv4 sender, alias;
  Ipv4 addressed;  // the destination of the data; a switch may have several records of one group
  Qpn virtual_qpn, sender_qpn;
  std::uint16_t epoch = 0;
  bool merges = false;       // the sender is at this switch
  std::size_t branches = 0;  // ways that its data goes from here
  std::size_t replicas = 0;  // of its rule; 0: it has none, the data goes on as it is
  std::vector<SenderReceiverView> receivers;  // behind this switch
  std::uint64_t data_packets = 0, copies = 0;
  std::size_t rule_bytes = 0, merge_bytes = 0;  // in a hardware table
};

// What one group takes in a switch, by field: {"path_index", n}, {"path.ack", n}, ... Together all
// that the switch allocates for it, but what the allocator and the nodes of maps add, and payloads
// of frames at the gate, which lie in the PayloadStore.
struct TableBytes {
  using Rows = std::vector<std::pair<std::string, std::size_t>>;
  Rows table;   // what a hardware table would hold
  Rows beside;  // evidence about paths, ends of messages for the MSN, frames that wait at the gate,
                // regions, the roster, and what else registration keeps

  static std::size_t sum(const Rows& rows);
};

// A group with paths to the highest of a switch's ports.
struct TableShape {
  std::size_t ports, paths;  // 2 paths at least, if there are `members`
  std::size_t members = 0;   // 0: one at each path; else all paths are trunks, and lead to these
  bool active = true;        // registered, and activated
};

class Behaviour;
struct Group;
// Chooses what a group does, when it is registered (behaviour.h).
using MakeBehaviour = std::unique_ptr<Behaviour> (*)(const Group&, const SwitchConfig&);
std::unique_ptr<Behaviour> make_behaviour(const Group& group, const SwitchConfig& config);

class Switch {
 public:
  // `payloads`: holds the frames that this switch keeps.
  Switch(SwitchConfig config, PayloadStore& payloads, MakeBehaviour make = make_behaviour);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  void on_packet(Instant now, PortId port, const Frame& frame, SwitchOutput& out);
  void on_timer(Instant now, SwitchOutput& out);
  Instant deadline() const;
  void on_port_up(Instant now, PortId port, SwitchOutput& out);
  void on_port_down(Instant now, PortId port, SwitchOutput& out);
  // Takes what SwitchConfig::take_settings() takes of `next`. Groups that there are stay, even more
  // than there may be now; what is due earlier by new ages happens by the next on_timer().
  void take_settings(const SwitchConfig& next);
  // The group whose data this frame is, if that flows here: what on_packet() would copy.
  std::optional<McstId> group_of_data(const Frame& frame) const;
  // The ports that the group's data goes to when it comes in by `ingress`; clears `out`.
  void list_copies(McstId group, PortId ingress, std::vector<PortId>& out) const;
  // False: the port is down, or a trunk that is dark.
  bool is_up(PortId port) const;

  // For simulation: as if the group's source had sent `packets` messages of one packet more, and all
  // had acknowledged them. False, and nothing changes: no such table, or something is under way.
  bool jump(McstId group, std::uint64_t packets);

  const SwitchConfig& config() const;
  const Counters& counters() const;
  std::vector<GroupView> groups() const;
  // The same in pieces: a group's tables, of those that group_ids() names. None if it has gone.
  std::vector<McstId> group_ids() const;
  std::vector<GroupView> groups(McstId id) const;
  std::vector<SenderGroupView> sender_groups() const;  // by sender and virtual QPN
  std::size_t group_count() const;  // tables, pending ones included; tombstones not
  std::size_t tombstone_count() const;
  static TableBytes table_bytes(const TableShape& shape);
  void check_consistent() const;
  // "" if every frame that came in and every copy was counted (counters.h); else what does not add
  // up.
  std::string imbalance() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cepheus::fabric
