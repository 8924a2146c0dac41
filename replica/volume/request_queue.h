// Between the callers' threads and the volume's thread: requests with their bounce buffers, up to
// the volume's depth.
#pragma once

#include <cepheus/volume.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "replica/engine/writer_action.h"

namespace cepheus::replica {

// Memory that is registered with the NIC once, and given out in pages to requests for their data.
class BounceArena {
 public:
  static constexpr std::size_t kPage = 4096;

  // Throws std::bad_alloc.
  explicit BounceArena(std::size_t size);
  ~BounceArena();
  BounceArena(const BounceArena&) = delete;
  BounceArena& operator=(const BounceArena&) = delete;

  std::span<std::uint8_t> all() const { return {base_, size_}; }

  // The first space that is large enough; null: none now.
  std::uint8_t* take(std::size_t length);
  void give_back(std::uint8_t* piece, std::size_t length);

 private:
  static std::size_t pages(std::size_t length) { return (length + kPage - 1) / kPage * kPage; }

  std::uint8_t* base_;
  std::size_t size_;
  std::map<std::size_t, std::size_t> free_;  // offset -> bytes, no two adjacent
};

class RequestQueue {
 public:
  // `reserved` bytes behind `arena` are not given out.
  RequestQueue(unsigned depth, std::size_t arena, std::size_t reserved);

  struct Slot {
    IoRequest io{};
    void* user = nullptr;  // reads
    std::uint8_t* bounce = nullptr;
    cepheus_volume_done_t done = nullptr;
    void* arg = nullptr;
    bool is_busy = false;
  };

  std::span<std::uint8_t> memory() const { return arena_.all(); }

  // --- Callers. 0, -EAGAIN, -ESTALE, -ECANCELED; waits for space if `may_wait`. Copies the data.
  // True in `is_first`: the caller must wake the volume's thread.
  int submit(const IoRequest& io, void* user, bool may_wait, cepheus_volume_done_t done, void* arg,
             bool& is_first);

  // --- The volume's thread.
  void own(std::thread::id thread) { owner_ = thread; }
  // Numbers of the slots submitted since the last call, in their order.
  void take(std::vector<unsigned>& out);
  Slot& slot(unsigned number) { return slots_[number]; }
  // Calls done() and frees the slot.
  void complete(unsigned number, int error);
  // From now on submit() returns `error`, and no caller waits for space.
  void close(int error);

 private:
  Slot* find_space(std::size_t length, unsigned& number);

  BounceArena arena_;
  std::thread::id owner_;
  std::mutex mutex_;
  std::condition_variable space_;
  std::vector<Slot> slots_;
  std::vector<unsigned> submitted_;
  int closed_ = 0;
};

}  // namespace cepheus::replica
