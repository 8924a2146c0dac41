#include "fabric-sim/core/buffer_pool.h"

#include <cstring>

namespace cepheus::sim {

wire::BufferRef BufferPool::acquire() {
  if (free_.empty()) {
    free_.push_back(static_cast<wire::BufferRef>(buffers_.size()));
    buffers_.push_back({std::make_unique<std::uint8_t[]>(buffer_bytes_), 0});
  }
  const wire::BufferRef buffer = free_.back();
  free_.pop_back();
  buffers_[buffer].references = 1;
  return buffer;
}

std::span<std::uint8_t> BufferPool::bytes(wire::BufferRef buffer) {
  if (buffer != kShared) return {buffers_[buffer].bytes.get(), buffer_bytes_};
  if (!shared_) shared_ = std::make_unique<std::uint8_t[]>(buffer_bytes_);
  return {shared_.get(), buffer_bytes_};
}

wire::Frame BufferPool::owned(const wire::Frame& frame) {
  if (frame.external == nullptr || frame.ref != wire::kNoBuffer) return frame;
  wire::Frame own = frame;
  const wire::BufferRef copy = acquire();
  assert(frame.payload_len <= bytes(copy).size());
  std::memcpy(bytes(copy).data(), frame.external, frame.payload_len);
  own.set_external_payload(bytes(copy).first(frame.payload_len), copy);
  return own;
}

}  // namespace cepheus::sim
