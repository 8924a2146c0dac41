// Small broadcasts that have arrived and that no call has taken yet.
//
// Buffers are the channel's, bounded by the lane's depth, until the lane goes: then they are
// copied. Under the transport's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "ompi-coll/transport.h"

namespace cepheus::coll {

// In front of every small broadcast's data.
struct EagerHeader {
  uint64_t unit;
  uint64_t bytes;  // of the data; kGone: the root does not have it any more
  uint32_t root;
  uint32_t reserved;
  static constexpr uint64_t kGone = ~uint64_t{0};
};

struct Arrived {
  Channel* channel = nullptr;
  void* data = nullptr;
  size_t length = 0;
  std::unique_ptr<std::byte[]> copy;  // owns `data` if it is no longer the channel's

  void release();
};

class Inbox {
 public:
  Inbox() = default;
  ~Inbox() { clear(); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // Channel::Arrival; `arg` is the Inbox.
  static void on_message(void* arg, Channel* channel, void* data, size_t length);

  bool is_empty() const { return queue_.empty(); }
  // The unit of the oldest message. Precondition: not empty.
  uint64_t first_unit() const;
  Arrived pop();
  // Copies all, so that the lane may go.
  void salvage();
  void clear();

 private:
  std::deque<Arrived> queue_;
};

}  // namespace cepheus::coll
