// One Cepheus switch without I/O: forwarding, registration, replication, bridging, feedback, source
// change.
//
//     on_packet(now, port, frame, actions)   a packet has arrived on a port
//     on_timer(now, actions)                 `deadline()` has passed (spurious calls are harmless)
//     on_port_up / on_port_down              a host or a neighbour came or went
//
// Packets leave through SwitchOutput::emits. Copies share the payload of the received frame
// (Frame::external, Frame::ref); its buffer stays the caller's. For a frame that the source-change
// gate holds, the engine has its own reference to the buffer, from the PayloadStore. If the store
// is full, the gate answers as a full gate. A payload that the engine itself has written (a long
// REGISTER) is external without a BufferRef: its bytes stay valid until the next call into the
// engine. docs/protocol.md states the rules, net/rules.def lists them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "net/pfc.h"
#include "net/switch_config.h"
#include "switch-emulator/engine/counters.h"
#include "switch-emulator/engine/group/payload_store.h"
#include "switch-emulator/engine/port_sight.h"
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

// Whose space a frame takes if it has to wait before a lossless link.
enum class Space : std::uint8_t {
  kIngress,  // the space of the frame that is handled
  kOwn,      // its group's own, which is kept for it: it always fits
  kNone,     // nobody's: it waits only if the queue has space
};

// Meaning of a frame for the account of the host that it reaches (docs/protocol.md, "Budget for
// unanswered frames").
enum class Worth : std::uint8_t {
  kAnswer,   // pays for frames of its receiver, if another host has caused it
  kResult,   // of a reduction: pays for a few, even if its receiver was the last to contribute
  kNothing,  // the switch's own answer, or the result of a single host's contributions
  kRepeat,   // its receiver has requested it, or has not acknowledged it: costs
};

// A frame to be sent. Its origin is the ingress of the frame that it copies or answers. The
// switch's own frames have none, and are charged to no host.
struct Emit {
  Emit(PortId to, PortId from, const Frame& f) : port(to), origin(from), frame(f) {}
  PortId port, origin;
  Space space = Space::kIngress;
  Worth worth = Worth::kAnswer;
  Frame frame;
};

// Outputs of one engine call; the caller owns it, reads it, clears it and passes it again.
struct SwitchOutput {
  std::vector<Emit> emits;
  std::vector<HeldPayload> released;  // buffers of emits; clear() releases them
  void clear() {
    emits.clear();
    released.clear();
  }
};

// For administrators (views.h).
struct GroupView;
struct SenderGroupView;
struct TableBytes;
struct TableShape;

class Behaviour;
struct Mft;
// What a group's REGISTER and the switch's memory decide about its behaviour.
struct GroupRequest {
  std::uint16_t flags = 0;  // of REGISTER
  std::optional<wire::MrpReduction> reduction;
  std::size_t memory_left = 0;  // bytes that no reduction group has reserved
};
// Chooses a group's behaviour, when it is registered (behaviour.h), or refuses the group.
using MadeBehaviour = tl::expected<std::unique_ptr<Behaviour>, wire::MrpReject>;
using MakeBehaviour = MadeBehaviour (*)(const Mft&, const SwitchConfig&, const GroupRequest&);
MadeBehaviour make_behaviour(const Mft& mft, const SwitchConfig& config,
                             const GroupRequest& request = {});

class Switch {
 public:
  // `payloads`: for the frames that this switch keeps.
  Switch(SwitchConfig config, PayloadStore& payloads, MakeBehaviour make = make_behaviour);
  ~Switch();

  void on_packet(Instant now, PortId port, const Frame& frame, SwitchOutput& out);
  void on_timer(Instant now, SwitchOutput& out);
  Instant deadline() const;
  void on_port_up(Instant now, PortId port, SwitchOutput& out);
  void on_port_down(Instant now, PortId port, SwitchOutput& out);
  // The link of `port` is lossless: data waits there, and hardly any is lost. So feedback is overdue
  // late, and never during a pause. `state` outlives this object.
  void watch(PortId port, const net::PauseState& state);
  // The medium of a host's port. `sight` outlives this object.
  void watch(PortId port, const PortSight& sight);
  // From now on the interface at `port` takes frames of at most `bytes`. New groups fit. Copies of
  // existing groups that do not fit are dropped, and the groups' leaders learn it.
  void set_mtu(PortId port, std::uint32_t bytes);
  // Adopts the settings of `next` that SwitchConfig::take_settings() takes. Existing groups stay,
  // even beyond the new limit; deadlines that new ages make earlier are handled by the next
  // on_timer().
  void take_settings(const SwitchConfig& next);
  // The group of this data frame, if it is active here: on_packet() would copy the frame.
  std::optional<McstId> group_of_data(const Frame& frame) const;
  // The egress ports of the group's data from `ingress`; clears `out`.
  void list_copies(McstId group, PortId ingress, std::vector<PortId>& out) const;
  // False: the port is down, or a trunk that is dark.
  bool is_up(PortId port) const;

  // For simulation: as if the group's source had sent `packets` messages of one packet more, and
  // all had acknowledged them. False, with no change: no such table, or a packet is under way.
  bool jump(McstId group, std::uint64_t packets);

  const SwitchConfig& config() const;
  const Counters& counters() const;
  std::vector<GroupView> groups() const;
  // The same one by one, of those that group_ids() names. None if it has gone.
  std::vector<McstId> group_ids() const;
  std::optional<GroupView> group(McstId id) const;
  std::vector<SenderGroupView> sender_groups() const;  // by sender and virtual QPN
  std::size_t group_count() const;  // tables, including pending ones, without tombstones
  std::size_t tombstone_count() const;
  static TableBytes table_bytes(const TableShape& shape);
  void check_consistent() const;
  // "" if every received frame and every copy was counted (counters.h); else the difference.
  std::string imbalance() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cepheus::fabric
