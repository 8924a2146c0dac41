// Registered buffers that puts of packed data are packed into: made when the first one is taken.
#pragma once

#include <mcast/mcast.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace cepheus::uct {

class BounceBuffers {
 public:
  using Number = std::uint32_t;
  static constexpr std::size_t kBytes = 8192;  // of one
  static constexpr std::size_t kCount = 64;    // as many as sends may be outstanding by default

  ~BounceBuffers();

  // MCAST_ERR_AGAIN: all are in use. MCAST_ERR_NO_MEMORY, or why they can't be registered.
  mcast_status_t take(mcast_context_h context, Number* out);
  void give_back(Number number) { free_.push_back(number); }
  void* address(Number number) const { return slab_.get() + number * kBytes; }
  mcast_mem_h memory() const { return memory_; }

 private:
  mcast_status_t make(mcast_context_h context);

  std::unique_ptr<char[]> slab_;
  mcast_mem_h memory_ = nullptr;
  std::vector<Number> free_;
};

inline BounceBuffers::~BounceBuffers() {
  if (memory_ != nullptr) mcast_mem_deregister(memory_);
}

inline mcast_status_t BounceBuffers::make(mcast_context_h context) {
  slab_.reset(new (std::nothrow) char[kCount * kBytes]);
  if (!slab_) return MCAST_ERR_NO_MEMORY;
  const mcast_status_t status = mcast_mem_register(context, slab_.get(), kCount * kBytes, &memory_);
  if (status != MCAST_OK) {
    memory_ = nullptr;
    slab_.reset();
    return status;
  }
  free_.reserve(kCount);
  for (Number number = kCount; number-- > 0;) free_.push_back(number);
  return MCAST_OK;
}

inline mcast_status_t BounceBuffers::take(mcast_context_h context, Number* out) {
  if (!slab_) {
    const mcast_status_t status = make(context);
    if (status != MCAST_OK) return status;
  }
  if (free_.empty()) return MCAST_ERR_AGAIN;
  *out = free_.back();
  free_.pop_back();
  return MCAST_OK;
}

}  // namespace cepheus::uct
