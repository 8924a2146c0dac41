#include "ucx-transport/bounce_buffers.h"

#include <new>

namespace cepheus::uct {

BounceBuffers::~BounceBuffers() {
  if (memory_ != nullptr) mcast_mem_deregister(memory_);
}

mcast_status_t BounceBuffers::make(mcast_context_h context) {
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

mcast_status_t BounceBuffers::take(mcast_context_h context, Number* out) {
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
