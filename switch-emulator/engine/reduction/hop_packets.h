// A reduction group's packets on the wire, by the node at the other end (docs/protocol.md,
// "Reductions"):
//
//                               source IP        destination IP   destination QPN
//   from a host                 host             McstID           0x1
//   to a host                   McstID           host             member's
//   to the parent, and back     child's switch   McstID           epoch
//   to a child, and back        McstID           child's switch   epoch
//
// Each hop is a reliable connection of its own: both directions have units and acknowledgements.
#pragma once

#include <optional>

#include "switch-emulator/engine/group/group_packet.h"
#include "switch-emulator/engine/group/mft.h"
#include "switch-emulator/engine/reduction/unit_slots.h"
#include "wire/extension_headers.h"

namespace cepheus::fabric {

struct Call;

// Sends a group's packets by its paths. One object lives as long as one call into the engine: all
// copies of a unit share one payload.
class HopPackets {
 public:
  // `parent`: the path towards the root, if any. `traffic_class`: TOS of the members' contributions.
  HopPackets(Call& call, const Mft& mft, PathNo parent, Psn start,
             const std::uint8_t& traffic_class)
      : call_(call), group_(mft), parent_(parent), start_(start), traffic_class_(traffic_class) {}
  ~HopPackets() { release(); }
  HopPackets(const HopPackets&) = delete;
  HopPackets& operator=(const HopPackets&) = delete;

  // Whether the packet's addresses are those of its path.
  bool is_addressed_well(const GroupPacket& packet) const;

  // `content` stays valid until the next unit is sent. A repeat has no space of its own: the first
  // packet may still wait in it.
  void send_unit(PathNo path, Unit unit, const UnitSlots::Content& content, bool ack_request,
                 bool is_repeat);
  // A packet that the path has acknowledged. Its device answers even while its program computes.
  void send_probe(PathNo path, Unit next);
  // An acknowledgement, or NAK. `stored`: units taken from that path.
  void send_answer(PathNo path, Unit stored, wire::Aeth answer, Space space = Space::kNone);
  // A notification of congestion.
  void send_cnp(PathNo path);

 private:
  wire::RoceHeaders headers_to(PathNo path, wire::Opcode opcode, Unit unit) const;
  void send_bare(PathNo path, Counter kind, const wire::RoceHeaders& headers, Space space);
  Worth worth_of_results() const;
  // False: there is no memory for a payload.
  bool set_payload(Frame& frame, const UnitSlots::Content& content);
  void release();

  Call& call_;
  const Mft& group_;
  const PathNo parent_;
  const Psn start_;
  const std::uint8_t& traffic_class_;
  PayloadStore::Made made_;                // the last payload that did not fit into a frame,
  const std::uint8_t* made_of_ = nullptr;  // and the memory that it was copied from
};

}  // namespace cepheus::fabric
