// Between the callers' threads and the volume's own: requests with their bounce buffers, as many as
// may be under way.
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

// Memory that is registered with the NIC once, and given out in pages to requests: their data on
// its way.
class BounceArena {
 public:
  static constexpr std::size_t kPage = 4096;

  // Throws std::bad_alloc.
  explicit BounceArena(std::size_t size);
  ~BounceArena();
  BounceArena(const BounceArena&) = delete;
  BounceArena& operator=(const BounceArena&) = delete;

  std::span<std::uint8_t> all() const { return {base_, size_}; }

  // The first room there is for it; null: none now.
  std::uint8_t* take(std::size_t length);
  // As it was taken.
  void give_back(std::uint8_t* piece, std::size_t length);

 private:
  static std::size_t pages(std::size_t length) { return (length + kPage - 1) / kPage * kPage; }

  std::uint8_t* base_;
  std::size_t size_;
  std::map<std::size_t, std::size_t> free_;  // offset -> bytes, none beside another
};

class RequestQueue {
 public:
  // `arena` has bytes of `reserved` behind it that are not given out.
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

  // --- Callers. 0, -EAGAIN, -ESTALE, -ECANCELED; waits for room unless told not to. Its data is
  // copied. True in `is_first`: the volume's thread has to be woken.
  int submit(const IoRequest& io, void* user, bool may_wait, cepheus_volume_done_t done, void* arg,
             bool& is_first);

  // --- The volume's thread.
  void own(std::thread::id thread) { owner_ = thread; }
  // Numbers of slots that were submitted since, in their order.
  void take(std::vector<unsigned>& out);
  Slot& slot(unsigned number) { return slots_[number]; }
  // Calls back; the slot is free then.
  void complete(unsigned number, int error);
  // From now on submit() answers that, and nobody waits for room.
  void close(int error);
  unsigned busy() const;

 private:
  Slot* find_room(std::size_t length, unsigned& number);

  BounceArena arena_;
  std::thread::id owner_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::vector<Slot> slots_;
  std::vector<unsigned> submitted_;
  unsigned busy_ = 0;
  int closed_ = 0;
};

}  // namespace cepheus::replica
