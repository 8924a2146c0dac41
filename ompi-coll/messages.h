// Small messages between the members of a team over Open MPI's own point-to-point layer, on
// the team's tags.
//
// The management network: set-up, readiness, tear-down and repairs travel here, never user data of
// a healthy group. Requests are started and tested, never waited for.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "ompi-coll/team.h"

namespace cepheus::coll {

// Several sends and receives in flight together. Open MPI reads and writes the caller's memory until
// test() says that all are complete, but for sends of up to kCopied bytes, which it gets a copy of.
class Messages {
 public:
  static constexpr size_t kCopied = 4096;
  // The error of a receive of more than no bytes that an empty message answered.
  static constexpr int kEmpty = MPI_ERR_LASTCODE + 1;

  Messages() = default;
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // Errors are Open MPI's codes. A message of another length than `size` is MPI_ERR_TRUNCATE: no
  // receive here takes less than it asks for.
  int send(const void* data, size_t size, int to, Tag tag, const Team& team);
  int receive(void* data, size_t size, int from, Tag tag, const Team& team);
  // Sends a copy of up to kCopied bytes, and forgets it.
  static int post(const void* data, size_t size, int to, Tag tag, const Team& team);
  // True once all are complete; `error` then holds the first failure, or MPI_SUCCESS.
  bool test(int& error);
  // Takes receives back that nothing has come for. True once nothing uses the caller's memory.
  bool end();

 private:
  struct Pending {
    ompi_request_t* request;
    bool is_receive;
    size_t size;
    std::unique_ptr<std::byte[]> copy;  // of what is sent
  };
  static int start(const void* data, size_t size, int to, Tag tag, const Team& team, Pending& out);
  static void keep(Pending pending);
  std::vector<Pending> pending_;
  size_t next_ = 0;  // those before it are complete
  int error_ = MPI_SUCCESS;
};

}  // namespace cepheus::coll
