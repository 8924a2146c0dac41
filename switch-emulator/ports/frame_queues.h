// Frames that wait for their hosts' turns, where all hosts' come by one interface: a queue a host,
// in memory that is set aside once.
//
// A queue may hold twice as many frames as are free (dynamic thresholds, Choudhury and Hahne 1998;
// as in ring_share.h): whoever sends more than his turns take leaves a third to whoever else comes.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/frame.h"

namespace cepheus::fabric {

class FrameQueues {
 public:
  class Queue {
   public:
    bool is_empty() const { return count_ == 0; }

   private:
    friend class FrameQueues;
    std::uint32_t first_ = 0, last_ = 0;  // where count_ > 0
    std::uint32_t count_ = 0;
  };

  explicit FrameQueues(std::uint32_t capacity) : nodes_(capacity), free_count_(capacity) {
    for (std::uint32_t i = 0; i < capacity; ++i) nodes_[i].next = i + 1;
  }

  // False if the queue has its share.
  bool push(Queue& queue, const wire::Frame& frame) {
    if (queue.count_ >= 2 * free_count_) return false;
    const std::uint32_t at = free_;
    free_ = nodes_[at].next;
    --free_count_;
    nodes_[at].frame = frame;
    (queue.count_ == 0 ? queue.first_ : nodes_[queue.last_].next) = at;
    queue.last_ = at;
    ++queue.count_;
    return true;
  }
  // False if there is none.
  bool pop(Queue& queue, wire::Frame& frame) {
    if (queue.count_ == 0) return false;
    const std::uint32_t at = queue.first_;
    queue.first_ = nodes_[at].next;
    --queue.count_;
    frame = nodes_[at].frame;
    nodes_[at].next = free_;
    free_ = at;
    ++free_count_;
    return true;
  }

 private:
  struct Node {
    wire::Frame frame;
    std::uint32_t next = 0;
  };

  std::vector<Node> nodes_;
  std::uint32_t free_ = 0;  // the first
  std::uint32_t free_count_;
};

}  // namespace cepheus::fabric
