// What a writer asks of a replica, and what it is answered, on their ordered control connection.
#pragma once

#include <cstdint>
#include <vector>

#include "replica/engine/volume_types.h"

namespace cepheus::replica {

enum class Ask : std::uint8_t {
  kPromise,      // take nobody older any more; the answer tells all that the replica knows
  kConfig,       // who is in sync from now on
  kConfigFound,  // the same of a configuration that was found: what was lost stays noted
  kBitmap,       // the whole bitmap, in place of the replica's
  kMark,         // set bits: data will follow
  kClear,        // clear bits: the chunks are alike and flushed everywhere
  kFlush,        // all data to the disk
  kJoin,         // leave the last multicast group, and be a member of the next one
  kPing,
};

struct Request {
  Ask ask = Ask::kPing;
  std::uint64_t serial = 0;            // what the answer repeats
  Epoch epoch;                         // the writer's
  Config config{};                     // kConfig, kConfigFound
  ChunkRange range{};                  // kMark, kClear
  std::uint64_t generation = 0;        // kJoin: of the group
  std::vector<std::uint64_t> words{};  // kBitmap
};

enum class Verdict : std::uint8_t {
  kDone,
  kRefused,  // `promised` is somebody else's: the asker is fenced
  kFailed,   // the replica's disk
};

struct Answer {
  Ask ask = Ask::kPing;
  std::uint64_t serial = 0;
  Verdict verdict = Verdict::kDone;
  Epoch promised;
  // Answers to kPromise only:
  Config config{};
  Loss loss = Loss::kNone;
  std::vector<std::uint64_t> words{};
};

}  // namespace cepheus::replica
