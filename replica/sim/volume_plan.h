// The faults of a volume in one seed.
#pragma once

#include <cstdint>
#include <vector>

#include "replica/engine/writer.h"

namespace cepheus::replica::sim {

struct Fault {
  enum class Kind {
    kReplicaCrash,  // the program, after `step` of its actions
    kHostCrash,     // with its unflushed data
    kWriterCrash,   // after `step` of its actions; a new one starts
    kWriterStall,   // it stops for a while, a new one starts, and it continues
    kRival,         // a new one starts without a fault
    kCut,           // between the writer and a replica, for a while
    kGroupFails,    // without a known cause
    kPause,         // a replica stops for a while
    kPowerLoss,     // on all replicas' hosts, and on the writer's where `step` is even
    kNewDisk,       // a replica's disk fails, and another one replaces it
    kHungDisk,      // completes nothing for a while; `step`: 1 data, 2 the record, else both
    kRefused,       // a replica's program crashes, and the fabric forms no group with it any more
    kWriterPause,   // the writer stops for a while, and continues
    kNewDisks,      // all replicas' disks fail within `length`, and others replace them
  };
  Kind kind{};
  Instant at{};
  unsigned replica = 0;
  unsigned step = 0;
  Duration length{};
};

struct VolumePlan {
  unsigned replicas = 3;
  unsigned depth = 4;
  std::uint32_t blocks = 16;
  std::uint32_t chunk_blocks = 4;
  unsigned operations = 120;
  std::uint64_t copy_rate = 0;
  double fua_share = 0.1;    // of writes
  bool is_direct = false;    // a replica's memory ends with its program; only flushes write it back
  bool hangs_alone = false;  // one disk hangs until the end, and the other replicas have no fault
  std::vector<Fault> faults;  // in the order of time

  static VolumePlan of_seed(std::uint64_t seed);
  WriterSettings settings(const Rules& rules) const;
};
const char* to_string(Fault::Kind kind);

inline constexpr std::uint32_t kBlock = 512;  // bytes
inline constexpr Instant kFaultsEnd = Instant{std::chrono::milliseconds(200)};

}  // namespace cepheus::replica::sim
