#include "collectives/units/payload.h"

#include <cstring>
#include <new>

namespace cepheus::coll {

Code Payload::pack(std::size_t offset, void* memory, std::size_t length) {
  if (lost_data_ != Code::kDone) return lost_data_;
  if (memory == nullptr) return Code::kNoMemory;
  if (packing_ != nullptr) return packing_->pack(offset, memory, length);
  std::memcpy(memory, first_ + offset, length);
  return Code::kDone;
}

void Payload::unpack(std::size_t offset, const void* memory, std::size_t length) {
  if (error_ != Code::kDone) return;
  if (packing_ != nullptr) {
    error_ = packing_->unpack(offset, memory, length);
  } else if (memory != first_ + offset) {
    std::memcpy(first_ + offset, memory, length);
  }
}

void* Payload::window(std::size_t offset, std::size_t length) {
  if (packing_ == nullptr) return first_ != nullptr ? first_ + offset : nullptr;
  if (staging_bytes_ < length) {
    staging_.reset(new (std::nothrow) std::byte[length]);
    staging_bytes_ = staging_ != nullptr ? length : 0;
  }
  return staging_.get();
}

}  // namespace cepheus::coll
