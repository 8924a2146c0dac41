// A request takes a slot and a piece of the bounce arena (first fit, whole pages), or waits, or
// gets -EAGAIN. Data of a write is copied by the caller's thread, outside the lock. Completions run
// on the volume's thread, which never waits here. Memory that is reserved for probes and copies
// lies behind the arena, in the same registered piece.
#include "replica/volume/request_queue.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>

namespace cepheus::replica {

BounceArena::BounceArena(std::size_t size) : base_(nullptr), size_(pages(size)) {
  void* at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::uint8_t*>(at);
  free_[0] = size_;
}

BounceArena::~BounceArena() { munmap(base_, size_); }

std::uint8_t* BounceArena::take(std::size_t length) {
  const std::size_t size = pages(length);
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    if (at->second < size) continue;
    const std::size_t offset = at->first, left = at->second - size;
    free_.erase(at);
    if (left > 0) free_[offset + size] = left;
    return base_ + offset;
  }
  return nullptr;
}

void BounceArena::give_back(std::uint8_t* piece, std::size_t length) {
  const auto offset = static_cast<std::size_t>(piece - base_);
  auto at = free_.emplace(offset, pages(length)).first;
  const auto next = std::next(at);
  if (next != free_.end() && at->first + at->second == next->first) {
    at->second += next->second;
    free_.erase(next);
  }
  if (at == free_.begin()) return;
  const auto before = std::prev(at);
  if (before->first + before->second != at->first) return;
  before->second += at->second;
  free_.erase(at);
}

RequestQueue::RequestQueue(unsigned depth, std::size_t arena, std::size_t reserved)
    : arena_(arena + reserved), slots_(depth) {
  submitted_.reserve(depth);
  // The rear end stays reserved: the arena hands out its front first.
  std::uint8_t* front = arena_.take(arena);
  arena_.take(reserved);
  arena_.give_back(front, arena);
}

RequestQueue::Slot* RequestQueue::find_space(std::size_t length, unsigned& number) {
  const auto at = std::ranges::find_if(slots_, [](const Slot& slot) { return !slot.is_busy; });
  if (at == slots_.end()) return nullptr;
  std::uint8_t* bounce = length > 0 ? arena_.take(length) : nullptr;
  if (length > 0 && bounce == nullptr) return nullptr;
  at->is_busy = true;
  at->bounce = bounce;
  number = static_cast<unsigned>(at - slots_.begin());
  return &*at;
}

int RequestQueue::submit(const IoRequest& io, void* user, bool may_wait, cepheus_volume_done_t done,
                         void* arg, bool& is_first) {
  unsigned number = 0;
  Slot* slot = nullptr;
  std::unique_lock lock(mutex_);
  while (closed_ == 0 && (slot = find_space(io.length, number)) == nullptr) {
    if (!may_wait || std::this_thread::get_id() == owner_) return -EAGAIN;
    space_.wait(lock);
  }
  if (closed_ != 0) return closed_;
  slot->io = io;
  slot->io.id = number;
  slot->user = user;
  slot->done = done;
  slot->arg = arg;
  if (io.kind == IoKind::kWrite) {
    lock.unlock();  // the slot belongs to this thread until it is submitted
    std::memcpy(slot->bounce, user, io.length);
    lock.lock();
  }
  is_first = submitted_.empty();
  submitted_.push_back(number);
  return 0;
}

void RequestQueue::take(std::vector<unsigned>& out) {
  const std::lock_guard lock(mutex_);
  out.insert(out.end(), submitted_.begin(), submitted_.end());
  submitted_.clear();
}

void RequestQueue::complete(unsigned number, int error) {
  Slot& slot = slots_[number];
  if (error == 0 && slot.io.kind == IoKind::kRead) {
    std::memcpy(slot.user, slot.bounce, slot.io.length);
  }
  const auto done = slot.done;
  void* arg = slot.arg;
  {
    const std::lock_guard lock(mutex_);
    if (slot.bounce != nullptr) arena_.give_back(slot.bounce, slot.io.length);
    slot.is_busy = false;
  }
  space_.notify_all();
  done(arg, error);
}

void RequestQueue::close(int error) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ == 0) closed_ = error;
  }
  space_.notify_all();
}

}  // namespace cepheus::replica
