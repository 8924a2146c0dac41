// The completion queues of one context. Groups share them, so that one poll serves many groups.
//
// A group reserves an entry for each of its work requests. If all reservations are used up, a
// further queue is made. A queue is twice as large as its reservations, because completions of a
// destroyed group stay until they are polled.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "libmcast/device.h"

namespace cepheus::mcast {

class CompletionQueues {
 public:
  // Entries of a queue. Made and ended without the state lock, which both take.
  class Reservation {
   public:
    Reservation(CompletionQueues& queues, ibv_cq* queue, std::uint32_t entries)
        : queues_(queues), queue_(queue), entries_(entries) {}
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;
    ~Reservation() { queues_.release(queue_, entries_); }

    ibv_cq* queue() const { return queue_; }

   private:
    CompletionQueues& queues_;
    ibv_cq* const queue_;
    const std::uint32_t entries_;
  };

  // `state` is the context's lock, which the callers of poll() and arm() hold.
  CompletionQueues(const Device& device, std::mutex& state);

  // MCAST_ERR_NO_MEMORY; MCAST_ERR_INVALID: more than the device's largest queue holds. Without the
  // state lock, because the device may take long to make a queue.
  Expected<std::unique_ptr<Reservation>> reserve(std::uint32_t entries);
  // Up to out.size() completions, over all queues in turn; a negative number of a queue that failed
  // counts as none.
  std::size_t poll(std::span<ibv_wc> out);
  // Later completions make the descriptor readable, until the next call. -1: the device has no
  // descriptor.
  int arm();

 private:
  struct Queue {
    CqHandle handle;
    std::uint32_t capacity;
    std::uint32_t reserved;
    bool is_armed = false;  // and its event has not been fetched
  };

  ibv_cq* find_entries(std::uint32_t entries);
  void release(ibv_cq* queue, std::uint32_t entries);

  const Device& device_;
  std::mutex& state_;
  const ChannelHandle channel_;  // outlives the queues; never waited for here; may be null
  std::vector<Queue> queues_;
  std::size_t next_ = 0;  // the queue that the next poll starts with
};

}  // namespace cepheus::mcast
