// A packet of a group as it came in by one of its paths, its headers decoded.
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
