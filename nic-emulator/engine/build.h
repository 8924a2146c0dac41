// What came of an attempt to build a packet.
#pragma once

namespace cepheus::rnic {

enum class Build {
  kBuilt,
  kNothing,      // there was nothing to send after all
  kNeedsBuffer,  // its payload needs the driver's buffer
  kFailed,       // memory could not be read: the QP may break down now
};

}  // namespace cepheus::rnic
