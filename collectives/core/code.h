// The outcome of a step of a collective, and the ways that calls take.
#pragma once

#include <cstddef>
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

// The ranks' calls differ, so perhaps their windows do. Ranks find it behind all messages of the call.
constexpr bool is_mistake(Code rc) {
  return rc == Code::kTruncated || rc == Code::kCountsDiffer || rc == Code::kRootsDiffer;
}

// The ways that calls take.
enum class Route : std::uint8_t {
  kEager,    // a broadcast by multicast, copied
  kBulk,     // ... straight between buffers
  kHosts,    // among one rank of each host, and inside hosts
  kTree,     // the rest of a broadcast, or all of it, point to point
  kSaved,    // the MPI implementation's own algorithm
  kNetwork,  // a reduction in the network
  kMessages  // a reduction by our own messages between ranks
};
inline constexpr std::size_t kRoutes = 7;

}  // namespace cepheus::coll
