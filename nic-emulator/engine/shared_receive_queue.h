// Receives that several queue pairs take from (IBTA vol. 1, 10.2.9).
#pragma once

#include <algorithm>

#include "nic-emulator/engine/memory_table.h"
#include "nic-emulator/engine/work_queue.h"
#include "wire/result.h"

namespace cepheus::rnic {

// Posts to a queue as ibv_post_recv does. Errors: kInvalid (SGEs), kAgain (full).
inline wire::Result<void> post_receive(WorkQueue<RecvWqe>& queue, const RecvWr& wr,
                                       std::uint32_t max_sge) {
  if (wr.sges.size() > max_sge) {
    return wire::invalid("more SGEs than the queue's max_recv_sge");
  }
  if (queue.full()) {
    return wire::fail(wire::ErrorCode::kAgain, "receive queue full: poll completions first");
  }
  RecvWqe wqe;
  wqe.wr_id = wr.wr_id;
  wqe.length = total_length(wr.sges);
  queue.push(wqe, wr.sges);
  return {};
}

class SharedReceiveQueue {
 public:
  SharedReceiveQueue(SrqId id, const SrqInit& init)
      : id_(id), init_(init), queue_(init.max_wr, init.max_sge, 0) {}

  SrqId id() const { return id_; }
  const SrqInit& init() const { return init_; }
  SrqAttr query() const { return {init_.max_wr, init_.max_sge, limit_}; }
  wire::Result<void> post(const RecvWr& wr) { return post_receive(queue_, wr, init_.max_sge); }

  wire::Result<void> arm(std::uint32_t limit, NicOutput& out) {
    if (limit > init_.max_wr) {
      return wire::invalid("limit above the queue's max_wr: lower it");
    }
    limit_ = limit;
    check_limit(out);
    return {};
  }

  // Errors: kInvalid (more receives wait, or the limit is higher).
  wire::Result<void> resize(std::uint32_t max_wr) {
    if (max_wr < std::max<std::uint64_t>(limit_, queue_.tail() - queue_.head())) {
      return wire::invalid("more receives are posted than that, or the limit is higher");
    }
    queue_.resize(max_wr);
    init_.max_wr = max_wr;
    return {};
  }

  // Moves the oldest receive to `wqe` and `sges`, which holds max_sge elements. False: none.
  bool take(RecvWqe& wqe, std::span<Sge> sges, NicOutput& out) {
    if (queue_.empty()) return false;
    wqe = queue_.front();
    const auto from = queue_.sges(queue_.head());
    std::copy(from.begin(), from.end(), sges.begin());
    queue_.pop();
    check_limit(out);
    return true;
  }

  // Queue pairs that refer to it; it outlives them.
  void join() { ++users_; }
  void leave() { --users_; }
  bool in_use() const { return users_ != 0; }

 private:
  void check_limit(NicOutput& out) {
    if (limit_ == 0 || queue_.tail() - queue_.head() >= limit_) return;
    limit_ = 0;  // reported once
    out.events.push_back({AsyncEventKind::kSrqLimitReached, Qpn(), id_});
  }

  const SrqId id_;
  SrqInit init_;
  WorkQueue<RecvWqe> queue_;
  std::uint32_t limit_ = 0;
  std::uint32_t users_ = 0;
};

}  // namespace cepheus::rnic
