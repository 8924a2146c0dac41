// A packet of a group, with its ingress path and decoded headers.
#pragma once

#include "switch-emulator/engine/path.h"
#include "wire/roce.h"

namespace cepheus::fabric {

struct GroupPacket {
  const Frame& frame;
  const wire::RoceHeaders& headers;
  PathNo path;

  Psn psn() const { return headers.bth.psn; }  // in the numbering of its port
};

}  // namespace cepheus::fabric
