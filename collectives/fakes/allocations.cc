#include "collectives/fakes/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

namespace {
thread_local std::size_t counted = 0;
thread_local bool is_counting = false;
bool is_memory_scarce = false;
std::atomic<std::size_t> held{0};
}  // namespace

void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  if (is_counting) ++counted;
  held += malloc_usable_size(memory);
  return memory;
}
// std::stable_partition calls it; AddressSanitizer's own would not go with the operator delete here.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return ::operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
// GCC inlines one of the two and takes them for strangers.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void operator delete(void* memory) noexcept {
  held -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { ::operator delete(memory); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return is_memory_scarce ? nullptr : ::operator new[](bytes);
}

namespace cepheus::coll::fake {

std::size_t allocations() { return counted; }
std::size_t held_bytes() { return held; }
void make_memory_scarce(bool is_scarce) { is_memory_scarce = is_scarce; }

Counting::Counting(bool on) : before_(std::exchange(is_counting, on)) {}
Counting::~Counting() { is_counting = before_; }

}  // namespace cepheus::coll::fake
