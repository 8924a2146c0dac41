// How a writer behaves; times that depend on each other.
#pragma once

#include <chrono>

#include "replica/engine/rules.h"
#include "replica/engine/volume_types.h"

namespace cepheus::replica {

struct WriterSettings {
  unsigned replicas = 3;
  Geometry geometry;
  unsigned depth = 64;          // requests at once
  std::uint64_t copy_rate = 0;  // bytes a second for replicas that return, 0: as fast as it goes
  Duration ping = std::chrono::milliseconds(250);
  // A replica that says nothing for so long is taken for dead; a connection that breaks is enough.
  Duration silence = std::chrono::milliseconds(1000);
  // What the first replica in sync has done, the others have done after so long again, or after as
  // long again as it took: else their disks hang.
  Duration disk = std::chrono::seconds(10);
  // An evicted replica may return after `rejoin`. Each return that fails doubles that, up to the most.
  Duration rejoin = std::chrono::milliseconds(500), rejoin_most = std::chrono::minutes(1);
  Duration reform = std::chrono::milliseconds(50);  // a group that failed is tried again after
  Duration clean = std::chrono::seconds(5);         // marks of chunks idle for so long go
  Rules rules{};
};

}  // namespace cepheus::replica
