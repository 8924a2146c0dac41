// The program's data of one collective as bytes: contiguous memory as it is, anything else packed and
// unpacked by the host.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

#include "collectives/host_mpi.h"

namespace cepheus::coll {

class Payload {
 public:
  Payload(void* first, std::size_t bytes) : bytes_(bytes), first_(static_cast<std::byte*>(first)) {}
  // `packing` outlives it.
  Payload(Packing& packing, std::size_t bytes) : bytes_(bytes), packing_(&packing) {}

  std::size_t bytes() const { return bytes_; }
  // Sends may read window() at once, without pack().
  bool contiguous() const { return packing_ == nullptr && lost_data_ == Code::kDone; }

  // See Packing. pack(): null if there is no memory.
  Code pack(std::size_t offset, void* memory, std::size_t length);
  // Does nothing after a failure.
  void unpack(std::size_t offset, const void* memory, std::size_t length);
  // Some of the data is missing here, for the reason `rc`. The first failure stays in error(), and
  // the call ends in it. This rank still takes part in the rest, because others wait for it.
  // Code::kNotServed (all go to the saved function) replaces such a failure.
  void fail(Code rc) {
    if (error_ == Code::kDone || rc == Code::kNotServed) error_ = rc;
  }
  Code error() const { return error_; }
  // There is no data, for the reason `rc`: pack() fails from now on.
  void lose_data(Code rc) { lost_data_ = rc; }
  // Memory that holds [offset, offset + length): the user's own, or a staging buffer of `length`
  // bytes. Null: there is none.
  void* window(std::size_t offset, std::size_t length);

 private:
  std::size_t bytes_;
  std::byte* first_ = nullptr;  // contiguous: the first byte
  Packing* packing_ = nullptr;
  Code lost_data_ = Code::kDone;
  Code error_ = Code::kDone;  // the first failure
  std::unique_ptr<std::byte[]> staging_;
  std::size_t staging_bytes_ = 0;
};

inline Code Payload::pack(std::size_t offset, void* memory, std::size_t length) {
  if (lost_data_ != Code::kDone) return lost_data_;
  if (memory == nullptr) return Code::kNoMemory;
  if (packing_ != nullptr) return packing_->pack(offset, memory, length);
  if (memory != first_ + offset) std::memcpy(memory, first_ + offset, length);
  return Code::kDone;
}

inline void Payload::unpack(std::size_t offset, const void* memory, std::size_t length) {
  if (error_ != Code::kDone) return;
  if (packing_ != nullptr) {
    error_ = packing_->unpack(offset, memory, length);
  } else if (memory != first_ + offset) {
    std::memcpy(first_ + offset, memory, length);
  }
}

inline void* Payload::window(std::size_t offset, std::size_t length) {
  if (packing_ == nullptr) return first_ != nullptr ? first_ + offset : nullptr;
  if (staging_bytes_ < length) {
    staging_.reset(new (std::nothrow) std::byte[length]);
    staging_bytes_ = staging_ != nullptr ? length : 0;
  }
  return staging_.get();
}

}  // namespace cepheus::coll
