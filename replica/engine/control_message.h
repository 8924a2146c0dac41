// A writer's requests to a replica, and the answers, on their ordered control connection.
#pragma once

#include <cstdint>
#include <vector>

#include "replica/engine/volume_types.h"

namespace cepheus::replica {

enum class RequestType : std::uint8_t {
  kPromise,  // refuse older epochs from now on; the answer has all that the replica knows
  kConfig,   // replicas in sync from now on
  kAdopt,    // the same for a configuration that was found: losses stay noted
  kBitmap,   // the whole bitmap, in place of the replica's
  kMark,     // set bits: data will follow
  kFlush,    // all data to the disk
  kJoin,     // leave the last multicast group, and be a member of the next one
  kPing,
};

struct Request {
  RequestType type = RequestType::kPing;
  std::uint64_t serial = 0;            // repeated in the answer
  Epoch epoch{};                       // the writer's
  Config config{};                     // kConfig, kAdopt
  ChunkRange range{};                  // kMark
  std::uint64_t generation = 0;        // kJoin: of the group
  std::vector<std::uint64_t> words{};  // kBitmap
  friend bool operator==(const Request&, const Request&) = default;
};

enum class Verdict : std::uint8_t {
  kDone,
  kRefused,  // `promised` is another writer's epoch: the requester is fenced
  kFailed,   // the replica's disk failed
};

struct Answer {
  RequestType type = RequestType::kPing;
  std::uint64_t serial = 0;
  Verdict verdict = Verdict::kDone;
  Epoch promised{};
  // Answers to kPromise only:
  Config config{};
  Loss loss = Loss::kNone;
  std::vector<std::uint64_t> words{};
  friend bool operator==(const Answer&, const Answer&) = default;
};

}  // namespace cepheus::replica
