// Group data: one copy to every path that lacks it (paper III-B 2, III-D "filtering retransmitted
// packets").
#pragma once

#include "switch-emulator/engine/registration/claim.h"
#include "wire/announcement.h"

namespace cepheus::fabric {

// How the copies of a packet to hosts are made. To switches it goes unchanged, except for bridging.
struct Copies {
  enum class Kind : std::uint8_t {
    kAsItIs,      // unchanged, as to switches
    kContinued,   // unchanged: a packet of a WRITE after the first
    kAddressed,   // a WRITE's first packet, with address and key of the host's own region
    kAnnouncing,  // an announcement: the switch notes the host's target (wire/announcement.h)
    kAnnounced,   // the first packet of an announced WRITE, with address and key from that note
  };
  Kind kind = Kind::kAsItIs;
  const wire::Announcement* announcement = nullptr;

  // A WRITE's first packet into memory, which each host must allow.
  bool is_checked() const { return kind == Kind::kAddressed || kind == Kind::kAnnounced; }
};

// Handles a SEND of an active group; the frame's ICRC has been checked. WRITEs go to
// replicate_write().
void replicate(Call& call, Group& group, const GroupPacket& packet, const Copies& copies = {});
// The same for an RDMA WRITE, by the group's write mode (docs/protocol.md, "Multicast WRITE").
void replicate_write(Call& call, Group& group, const GroupPacket& packet);

// Lets a newcomer's held packets through, if the gate has opened. Precondition: it holds some. Call
// it after all other changes of state.
void try_gate(Call& call, Group& group, const Leader& leader);

// For READ, atomics, and WRITE where it is off: sends the host an error, which acknowledges nothing
// new.
void refuse_operation(Call& call, Group& group, const GroupPacket& packet);

}  // namespace cepheus::fabric
