// Cepheus's behaviour: one source at a time, whose data is replicated and whose feedback is merged
// (paper III-B, III-D).
#pragma once

#include "switch-emulator/engine/behaviour.h"

namespace cepheus::fabric {

class OneSource final : public Behaviour {
 public:
  Disposition on_packet(Call& call, Group& group, const GroupPacket& packet) const override;
  void on_path_left(Call& call, Group& group) const override;
};

}  // namespace cepheus::fabric
