// Messages between the members of a team over the host's point-to-point layer, on the team's tags.
//
// Set-up, readiness, tear-down and repairs travel here, and all data that no group carries: broadcasts
// down a tree, and reductions' blocks inside hosts or without a group. Requests are started and tested, never waited for.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/group/team.h"

namespace cepheus::coll {

// Several sends and receives in flight together. The host reads and writes the caller's memory
// until test() reports all complete. Sends of up to Parameters::copied_bytes, at least kCopied, are
// copied first. An object in repeated use allocates nothing for messages of the same lengths.
class Messages {
 public:
  static constexpr std::size_t kCopied = 32;

  Messages() = default;
  ~Messages() { forget(); }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // A message of another length than `size` is Code::kTruncated, because no receive here takes
  // less. A message of no bytes is Code::kEmpty. `as_is`: it is not copied, however small.
  Code send(const void* data, std::size_t size, int to, Tag tag, const Team& team,
            bool as_is = false);
  Code receive(void* data, std::size_t size, int from, Tag tag, const Team& team);
  // Sends a copy, and forgets it.
  static Code post(const void* data, std::size_t size, int to, Tag tag, const Team& team);
  // Frees forgotten sends that are complete. That may destroy communicators, and with them others
  // that MPI's own collectives have made: call it without a lock.
  static void free_completed();
  // True once all are complete; `error` then holds the first failure, or Code::kDone.
  bool test(Code& error);
  // A peer is gone, so incomplete messages never complete: cancels receives. Sends can't be
  // cancelled.
  void forget();
  // Frees the memory for later messages, if none is under way.
  void shrink() {
    if (started_ == 0) std::vector<Pending>().swap(pending_);
  }

 private:
  struct Pending {
    host::Request* request = nullptr;
    bool is_receive = false;
    bool is_copied = false;
    std::size_t size = 0;
    std::unique_ptr<std::byte[]> copy;  // of the bytes to send; kept for the next message
    std::size_t capacity = 0;
  };
  // `out` says whether to copy.
  static Code start(const void* data, std::size_t size, int to, Tag tag, const Team& team,
                    Pending& out);
  struct Kept;
  static Kept& kept();
  static void keep(Pending pending);
  Pending& next();

  std::vector<Pending> pending_;
  std::size_t started_ = 0;  // those behind them are spare
  std::size_t tested_ = 0;   // those before it are complete
  Code error_ = Code::kDone;
};

}  // namespace cepheus::coll
