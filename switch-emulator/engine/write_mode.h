// What becomes of RDMA WRITEs to a group (docs/protocol.md, "Multicast WRITE"). Fixed when a group
// is registered.
#pragma once

#include "switch-emulator/engine/group_packet.h"

namespace cepheus::fabric {

struct Call;
struct Group;

class WriteMode {
 public:
  virtual ~WriteMode() = default;
  virtual const char* name() const = 0;  // as in the topology file
  virtual bool uses_regions() const { return false; }
  virtual bool uses_announcements() const { return false; }
  // Takes a packet of a WRITE; its ICRC has been checked. kHeld: the gate keeps the frame's buffer.
  virtual Disposition on_write(Call& call, Group& group, const GroupPacket& packet) const = 0;
};

// "regions": a source names a region's number and an offset in it; each member's own switch puts in
// the address and key that the member has published for it.
class WritesToRegions final : public WriteMode {
 public:
  const char* name() const override { return "regions"; }
  bool uses_regions() const override { return true; }
  Disposition on_write(Call& call, Group& group, const GroupPacket& packet) const override;
};

// "per-request" (Gleam 3.3): a source announces each WRITE by a packet before it, which says where it
// goes at every member; each member's own switch reads that, and puts it in.
class AnnouncedWrites final : public WriteMode {
 public:
  const char* name() const override { return "per-request"; }
  bool uses_announcements() const override { return true; }
  Disposition on_write(Call& call, Group& group, const GroupPacket& packet) const override;
};

// "same-key": all members have registered the same address under the same key; nothing is rewritten
// and only NICs check.
class WritesAsTheyAre final : public WriteMode {
 public:
  const char* name() const override { return "same-key"; }
  Disposition on_write(Call& call, Group& group, const GroupPacket& packet) const override;
};

// "none": refused, as READ and atomics are.
class NoWrites final : public WriteMode {
 public:
  const char* name() const override { return "none"; }
  Disposition on_write(Call& call, Group& group, const GroupPacket& packet) const override;
};

}  // namespace cepheus::fabric
