// The completion queues of one context: groups share them, so that one poll serves many groups.
//
// A group reserves an entry for each of its work requests; a further queue is made when the
// reservations of all others are used up. A queue is made twice as large as what may be reserved:
// completions of a destroyed group may linger until they are polled.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libmcast/device.h"

namespace cepheus::mcast {

class CompletionQueues {
 public:
  explicit CompletionQueues(const Device& device);
  CompletionQueues(const CompletionQueues&) = delete;
  CompletionQueues& operator=(const CompletionQueues&) = delete;

  // MCAST_ERR_NO_MEMORY; MCAST_ERR_INVALID: more than the device's largest queue holds.
  Expected<ibv_cq*> reserve(std::uint32_t entries);
  void release(ibv_cq* queue, std::uint32_t entries);
  // Up to out.size() completions, over all queues in turn; a negative number of a queue that failed
  // counts as none.
  std::size_t poll(std::span<ibv_wc> out);
  // What completes from now on makes the descriptor readable, until the next call. -1: the device
  // has none to give.
  int arm();

 private:
  struct Queue {
    CqHandle handle;
    std::uint32_t capacity;
    std::uint32_t reserved;
    bool is_armed = false;  // and its event has not been fetched
  };

  const Device& device_;
  const ChannelHandle channel_;  // outlives the queues; never waited for here; may be null
  std::vector<Queue> queues_;
  std::size_t next_ = 0;  // the queue that the next poll starts with
};

}  // namespace cepheus::mcast
