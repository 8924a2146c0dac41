// Small messages between the members of a team over Open MPI's own point-to-point layer, on
// the team's tags.
//
// The management network: set-up, readiness, tear-down and repairs travel here, never user data of
// a healthy group. Requests are started and tested, never waited for.
#pragma once

#include <cstddef>
#include <vector>

#include "ompi-coll/team.h"

namespace cepheus::coll {

// Several sends and receives in flight together. Buffers stay the caller's until test() says all
// are complete.
class Messages {
 public:
  Messages() = default;
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // Errors are Open MPI's codes. A message of another length than `size` is MPI_ERR_TRUNCATE: no
  // receive here takes less than it asks for.
  int send(const void* data, size_t size, int to, Tag tag, const Team& team);
  int receive(void* data, size_t size, int from, Tag tag, const Team& team);
  // True once all are complete; `error` then holds the first failure, or MPI_SUCCESS.
  bool test(int& error);

 private:
  struct Pending {
    ompi_request_t* request;
    bool is_receive;
    size_t size;
  };
  std::vector<Pending> pending_;
  size_t next_ = 0;  // those before it are complete
  int error_ = MPI_SUCCESS;
};

}  // namespace cepheus::coll
