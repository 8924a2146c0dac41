// Small messages between the members of a team over Open MPI's own point-to-point layer, on
// private tags.
//
// The management network: set-up, readiness, tear-down and repairs travel here, never user data of
// a healthy group. Requests are started and tested, never waited for.
#pragma once

#include <cstddef>
#include <vector>

#include "ompi-coll/team.h"

namespace cepheus::coll {

enum class Tag : int {
  kSetUp = MCA_COLL_BASE_TAG_HCOLL_BASE - 64,
  kOutcome = MCA_COLL_BASE_TAG_HCOLL_BASE - 65,
  kReady = MCA_COLL_BASE_TAG_HCOLL_BASE - 66,
  kDone = MCA_COLL_BASE_TAG_HCOLL_BASE - 67,
  kRelease = MCA_COLL_BASE_TAG_HCOLL_BASE - 68,
  kControl = MCA_COLL_BASE_TAG_HCOLL_BASE - 69,
  kRepair = MCA_COLL_BASE_TAG_HCOLL_BASE - 70,
  kTree = MCA_COLL_BASE_TAG_HCOLL_BASE - 71,
  kArrange = MCA_COLL_BASE_TAG_HCOLL_BASE - 72,
};

// Several sends and receives in flight together. Buffers stay the caller's until test() says all
// are complete.
class Messages {
 public:
  Messages() = default;
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // Errors are Open MPI's codes.
  int send(const void* data, size_t size, int to, Tag tag, const Team& team);
  int receive(void* data, size_t size, int from, Tag tag, const Team& team);
  // True once all are complete; `error` then holds the first failure, or MPI_SUCCESS.
  bool test(int& error);

 private:
  std::vector<ompi_request_t*> requests_;
  size_t next_ = 0;  // those before it are complete
  int error_ = MPI_SUCCESS;
};

}  // namespace cepheus::coll
