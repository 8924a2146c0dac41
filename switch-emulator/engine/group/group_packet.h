// A packet of a group, with its ingress path and decoded headers.
#pragma once

#include "switch-emulator/engine/group/path.h"
#include "wire/roce.h"

namespace cepheus::fabric {

struct Leader;

struct GroupPacket {
  const Frame& frame;
  const wire::RoceHeaders& headers;
  PathNo path;
  const Leader& leader;        // the group's
  std::uint16_t path_mtu = 0;  // ... 0: not known

  Psn psn() const { return headers.bth.psn; }  // in the numbering of its port
};

}  // namespace cepheus::fabric
