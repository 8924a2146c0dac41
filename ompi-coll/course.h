// How one broadcast is served from its beginning to its end: call progress() until it is done.
// Under the communicator's guard; never blocks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ompi-coll/agreement.h"

namespace cepheus::coll {

// What a broadcast took, for counters and `cepheusctl explain`.
enum class Route : std::uint8_t { kEager, kBulk, kHosts, kTree, kSaved };

class Course {
 public:
  virtual ~Course() = default;
  // OMPI_SUCCESS, an error, OMPI_ERR_WOULD_BLOCK: call again; OMPI_ERR_NOT_AVAILABLE, on all ranks
  // alike: the saved module shall serve it.
  virtual int progress() = 0;
  // How long the caller may sleep without delaying it much.
  virtual std::chrono::nanoseconds spare_time() const = 0;
  virtual Route route() const = 0;
  virtual const std::string& reason() const = 0;  // for the route
};

}  // namespace cepheus::coll
