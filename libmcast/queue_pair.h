// One RC queue pair whose remote end is a group (paper III-A; of sender groups MC-RDMA III-A).
//
// create(), connect(), halt(), synchronise(), stop() and the end may take long: none of them is
// called under the context's state lock, unless the system gives no thread (slow_calls.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "libmcast/completion_queues.h"
#include "libmcast/device.h"
#include "libmcast/engine/posted_work.h"

namespace cepheus::mcast {

struct QueueDepths {
  std::uint32_t send = 0;
  std::uint32_t receive = 0;
};

// One buffer of a work request; length 0: none.
struct Piece {
  const void* address = nullptr;
  std::size_t length = 0;
  std::uint32_t lkey = 0;
};

// The target of a WRITE: members' own switches replace it by addresses and keys.
struct RegionPlace {
  std::uint32_t rkey = 0;  // the region's number, or its key on all members
  std::uint64_t offset = 0;
};

// The reason of a failed work request, for users: the verbs status and its usual cause in a group.
std::string work_failure_text(ibv_wc_status status, bool is_receive, bool of_reduction);

class QueuePair {
 public:
  // In INIT: receives can be posted.
  static Expected<std::unique_ptr<QueuePair>> create(const Device& device, CompletionQueues& queues,
                                                     QueueDepths depths);

  std::uint32_t number() const { return handle_->qp_num; }
  // To RTS, towards `remote`. The kernel may resolve its neighbour, which takes up to a second
  // without an answer.
  Expected<void> connect(const RemoteEnd& remote, Timers timers);
  // To ERR for a while: posted work completes flushed, and last of all a receive `marker`. No
  // receive may be posted until synchronise(). Precondition: no send is outstanding.
  Expected<void> halt(std::uint64_t marker);
  Expected<PairSync::Psns> psns() const;
  // Whether a queue pair of the device serves again after an error: hosts need that to set PSNs.
  static Expected<void> check_comes_back(const Device& device, CompletionQueues& queues);
  // After halt(), when the marker has completed: both PSNs become one of the two, by way of RESET
  // (paper III-E), and `post_receives` posts all receives again: false if the device refuses one.
  enum class Take { kReceivePsn, kSendPsn };
  Expected<void> synchronise(Take take, const std::function<bool()>& post_receives);
  // To ERR: all work completes, flushed.
  void stop();

  // False only if the device refuses: the queues' depths bound outstanding work.
  bool post_send(std::uint64_t wr_id, const Piece& piece, std::uint32_t imm);
  // An RDMA WRITE; members get the immediate, if there is one, by a receive.
  bool post_write(std::uint64_t wr_id, const Piece& piece, const RegionPlace& place,
                  std::optional<std::uint32_t> imm);
  // The same behind its announcement (wire/announcement.h), in one call. `silent` completes only if
  // it fails.
  bool post_announced_write(std::uint64_t silent, const Piece& announcement, std::uint64_t wr_id,
                            const Piece& piece, std::optional<std::uint32_t> imm);
  bool post_receive(std::uint64_t wr_id, const Piece& piece);

  // Lists, in one call each. The number that the device has taken: fewer if it refuses one.
  struct Request {
    std::uint64_t wr_id = 0;
    Piece piece;
    std::uint32_t imm = 0;     // of a send
    bool is_signaled = false;  // a send; else it completes only if it fails
  };
  static constexpr std::size_t kMostListed = 16;
  std::size_t post_sends(std::span<const Request> list);
  std::size_t post_receives(std::span<const Request> list);

 private:
  QueuePair(const Device& device, std::unique_ptr<CompletionQueues::Reservation> completions)
      : device_(device), completions_(std::move(completions)) {}
  Expected<void> modify(ibv_qp_attr& attributes, int mask, const char* state);
  Expected<void> initialise();
  Expected<void> bring_up(wire::Psn psn);

  const Device& device_;
  const std::unique_ptr<CompletionQueues::Reservation> completions_;  // outlives the queue pair
  QpHandle handle_;
  RemoteEnd remote_;  // and how it was connected, for the next time
  Timers timers_{};
};

}  // namespace cepheus::mcast
