#include "replica/volume/bounce_arena.h"

#include <new>

namespace cepheus::replica {

BounceArena::BounceArena(std::size_t size) : base_(nullptr), size_(pages(size)) {
  void* at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::uint8_t*>(at);
  free_[0] = size_;
}

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

}  // namespace cepheus::replica
