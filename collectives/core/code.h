// The outcome of a step of a collective, and the ways that broadcasts take.
#pragma once

#include <cstdint>

namespace cepheus::coll {

// Any other value is an error code of the MPI implementation's own, which the program gets as it is.
enum class Code : int {
  kDone = 0,
  kPending = 1 << 24,  // call again
  kNotServed,          // on all ranks alike: the saved function shall serve the call
  kFailed,
  kNoMemory,
  kTruncated,     // of a receive: the message had another length
  kEmpty,         // of a receive of more than no bytes: the message had none
  kCountsDiffer,  // between the ranks of one call, as do the next one's
  kRootsDiffer
};

// The ways that broadcasts take.
enum class Route : std::uint8_t {
  kEager,  // by multicast, copied
  kBulk,   // by multicast, straight between buffers
  kHosts,  // among one rank of each host, and inside hosts
  kTree,   // the rest of one, or all of it, point to point
  kSaved   // the MPI implementation's own algorithm
};

}  // namespace cepheus::coll
