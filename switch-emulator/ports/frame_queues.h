// Frames that wait for their hosts' turns, where all hosts' frames come by one interface: a queue
// per host, in memory that is allocated once.
//
// Each queue has its share of the frames (wire/share.h): a host that sends more than its turns
// allow leaves a third to other hosts.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/frame.h"
#include "wire/share.h"

namespace cepheus::fabric {

class FrameQueues {
 public:
  class Queue {
   public:
    bool is_empty() const { return share_.held() == 0; }

   private:
    friend class FrameQueues;
    std::uint32_t first_ = 0, last_ = 0;  // valid if it is not empty
    wire::Share<std::uint32_t> share_;
  };

  explicit FrameQueues(std::uint32_t capacity) : nodes_(capacity), free_count_(capacity) {
    for (std::uint32_t i = 0; i < capacity; ++i) nodes_[i].next = i + 1;
  }

  // Frames that one queue alone may have.
  std::uint32_t share_of_one() const {
    return static_cast<std::uint32_t>(wire::Share<std::uint32_t>::of_one(nodes_.size()));
  }
  std::uint32_t waiting() const { return static_cast<std::uint32_t>(nodes_.size()) - free_count_; }
  // False if the queue has its share.
  bool has_space(const Queue& queue) const { return queue.share_.has_space(free_count_); }
  bool push(Queue& queue, const wire::Frame& frame) {
    if (!has_space(queue)) return false;
    const std::uint32_t at = free_;
    free_ = nodes_[at].next;
    --free_count_;
    nodes_[at].frame = frame;
    (queue.is_empty() ? queue.first_ : nodes_[queue.last_].next) = at;
    queue.last_ = at;
    queue.share_.add();
    return true;
  }
  // Precondition: it is not empty.
  const wire::Frame& front(const Queue& queue) const { return nodes_[queue.first_].frame; }
  // False if there is none.
  bool pop(Queue& queue, wire::Frame& frame) {
    if (queue.is_empty()) return false;
    const std::uint32_t at = queue.first_;
    queue.first_ = nodes_[at].next;
    queue.share_.remove();
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
