// A random collective call, with a check of its result. Its constructor draws from the call's key alone,
// so all ranks draw alike. start() calls MPI; wrong() has the reason why the result is wrong, or "".
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/mpi/random_types.h"

namespace reductions {

using namespace random_types;

#ifdef OMPI_MAJOR_VERSION
inline constexpr bool kOpenMpi = true;
#else
inline constexpr bool kOpenMpi = false;
#endif

// A communicator, and another one of the same ranks for the check's own messages.
struct Place {
  const char* name;
  MPI_Comm comm, talk;
  int rank, size;
};

struct Settings {
  long pairwise_bytes;  // up to this size of all ranks' blocks a result's bits are known
  bool shows;           // each call that starts
  long long_bytes = 0;  // a rank contributes up to this in some reductions
};

class Call {
 public:
  virtual ~Call() = default;
  virtual void start(MPI_Request* request) = 0;  // null: the blocking form
  virtual void completed() {}
  virtual std::string wrong() = 0;  // after completion of all calls, on all ranks
  virtual std::string text() const = 0;
};

inline std::string first_difference(const std::vector<unsigned char>& is,
                                    const std::vector<unsigned char>& should, const char* what) {
  const auto differs = std::mismatch(is.begin(), is.end(), should.begin());
  if (differs.first == is.end()) return "";
  return std::string("byte ") + std::to_string(differs.first - is.begin() - Buffer::kMargin) +
         " of " + what + " is " + std::to_string(*differs.first) + ", not " +
         std::to_string(*differs.second);
}

// How many items a rank contributes: sizes lie around packets of two MTUs, around the largest result
// in the network (8 packets), and at 0 and 1.
inline int random_count(Random& random, MPI_Aint bytes_of_item, int ranks) {
  if (random.one_in(12)) return 0;
  if (random.one_in(8)) return 1;
  const MPI_Aint packet = random.one_in(2) ? 1024 : 4096;
  MPI_Aint bytes = random.between(1, 200);
  switch (random.below(5)) {
    case 0:
      bytes = packet;
      break;
    case 1:
      bytes = packet * random.between(1, 8) / ranks;
      break;
    case 2:
      bytes = packet * 8 / ranks;
      break;
    default:
      break;
  }
  const MPI_Aint count = (bytes + random.between(-1, 1)) / bytes_of_item + random.between(-1, 1);
  return static_cast<int>(std::max<MPI_Aint>(0, count));
}

}  // namespace reductions
