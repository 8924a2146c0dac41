// Between the callers' threads and the volume's own: requests with their bounce buffers, as many as may be under way.
#pragma once

#include <cepheus/volume.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "replica/engine/writer_action.h"
#include "replica/volume/bounce_arena.h"

namespace cepheus::replica {

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

  // --- Callers. 0, -EAGAIN, -ESTALE, -ECANCELED; waits for room unless told not to. Its data is copied. True in
  // `is_first`: the volume's thread has to be woken.
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
