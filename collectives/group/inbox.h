// Small broadcasts that have arrived and that no call has taken yet.
//
// Buffers are the channel's, bounded by the lane's depth, until the lane goes: then they are
// copied. Under the transport's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "collectives/group/channel.h"
#include "collectives/group/fifo.h"

namespace cepheus::coll {

// In front of every small broadcast's data.
struct EagerHeader {
  uint64_t unit;
  uint64_t bytes;  // of the data
  uint32_t root;
  uint32_t left;  // messages of the broadcast that come after this one
};

struct Arrived {
  Channel* channel = nullptr;
  void* data = nullptr;
  size_t length = 0;
  std::unique_ptr<std::byte[]> copy;  // owns `data` once the channel does not

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

  bool is_empty() const { return queue_.is_empty(); }
  Arrived pop() { return queue_.pop(); }
  // The header of the oldest message, if that is long enough to have one.
  std::optional<EagerHeader> front() const;
  // Copies all, so that the lane may go.
  void keep();
  void clear();

 private:
  Fifo<Arrived> queue_;
};

}  // namespace cepheus::coll
