// Settings of a writer, with times that depend on each other.
#pragma once

#include <chrono>

#include "replica/engine/rules.h"
#include "replica/engine/volume_types.h"

namespace cepheus::replica {

struct WriterSettings {
  unsigned replicas = 3;
  Geometry geometry;
  unsigned depth = 64;          // requests at once
  std::uint64_t copy_rate = 0;  // bytes a second for replicas that return, 0: unlimited
  Duration ping = std::chrono::milliseconds(250);
  // A replica without a message for this long counts as dead, as does one with a broken connection.
  Duration silence = std::chrono::milliseconds(1000);
  // Time limit of the others after the first replica in sync has finished: this long, or as long as
  // that one took, if longer. The disk of a later one counts as hung.
  Duration disk = std::chrono::seconds(10);
  // An evicted replica may return after `rejoin`. Each failed return doubles that, up to the limit.
  Duration rejoin = std::chrono::milliseconds(500), rejoin_most = std::chrono::minutes(1);
  Duration reform = std::chrono::milliseconds(50);  // a failed group is formed again after this
  Duration clean = std::chrono::seconds(5);  // marks of chunks idle for this long are cleared
  Rules rules{};
};

}  // namespace cepheus::replica
