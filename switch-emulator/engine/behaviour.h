// What a group does with its packets. Fixed when it is registered, and the only thing that a switch
// calls about data and feedback.
#pragma once

#include "switch-emulator/engine/group_packet.h"

namespace cepheus::fabric {

struct Call;
struct Group;

class Behaviour {
 public:
  virtual ~Behaviour() = default;
  // Takes a RoCE packet of an active group; its ICRC has been checked. kHeld: the group keeps the
  // frame's buffer.
  virtual Disposition on_packet(Call& call, Group& group, const GroupPacket& packet) const = 0;
  // A path has been taken out: what was waited for may be there.
  virtual void on_path_left(Call& call, Group& group) const = 0;
};

}  // namespace cepheus::fabric
