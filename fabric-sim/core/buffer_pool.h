// Payload buffers with reference counts, in place of the live fabric's shared memory. A switch may
// hold any number of them.
#pragma once

#include <cassert>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "switch-emulator/engine/group/payload_store.h"
#include "wire/frame.h"

namespace cepheus::sim {

class BufferPool final : public fabric::PayloadStore {
 public:
  explicit BufferPool(std::size_t buffer_bytes) : buffer_bytes_(buffer_bytes) {}

  wire::BufferRef acquire();  // with one reference; grows the pool if none is free
  std::span<std::uint8_t> bytes(wire::BufferRef buffer);
  // The same frame; a payload that is outside both the frame and the pool is copied into a buffer.
  wire::Frame owned(const wire::Frame& frame);
  // Stands for all payloads that are only lengths (rnic::NicConfig::moves_payload).
  static constexpr wire::BufferRef kShared = wire::kNoBuffer - 1;
  // kNoBuffer and kShared are ignored, so that callers need no check.
  bool hold(wire::BufferRef buffer) override {
    if (buffer >= kShared) return true;
    assert(buffers_[buffer].references > 0);
    ++buffers_[buffer].references;
    return true;
  }
  void release(wire::BufferRef buffer) override {
    if (buffer >= kShared) return;
    assert(buffers_[buffer].references > 0);
    if (--buffers_[buffer].references == 0) free_.push_back(buffer);
  }
  Made make(std::size_t bytes) override {
    assert(bytes <= buffer_bytes_);
    const wire::BufferRef buffer = acquire();
    return {this->bytes(buffer).first(bytes), buffer};
  }
  std::size_t in_use() const { return buffers_.size() - free_.size(); }

 private:
  struct Buffer {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::uint32_t references = 0;
  };
  const std::size_t buffer_bytes_;
  std::vector<Buffer> buffers_;
  std::vector<wire::BufferRef> free_;
  std::unique_ptr<std::uint8_t[]> shared_;
};

inline wire::BufferRef BufferPool::acquire() {
  if (free_.empty()) {
    free_.push_back(static_cast<wire::BufferRef>(buffers_.size()));
    buffers_.push_back({std::make_unique<std::uint8_t[]>(buffer_bytes_), 0});
  }
  const wire::BufferRef buffer = free_.back();
  free_.pop_back();
  buffers_[buffer].references = 1;
  return buffer;
}

inline std::span<std::uint8_t> BufferPool::bytes(wire::BufferRef buffer) {
  if (buffer != kShared) return {buffers_[buffer].bytes.get(), buffer_bytes_};
  if (!shared_) shared_ = std::make_unique<std::uint8_t[]>(buffer_bytes_);
  return {shared_.get(), buffer_bytes_};
}

inline wire::Frame BufferPool::owned(const wire::Frame& frame) {
  if (frame.external == nullptr || frame.ref != wire::kNoBuffer) return frame;
  wire::Frame own = frame;
  const wire::BufferRef copy = acquire();
  assert(frame.payload_len <= bytes(copy).size());
  std::memcpy(bytes(copy).data(), frame.external, frame.payload_len);
  own.set_external_payload(bytes(copy).first(frame.payload_len), copy);
  return own;
}

}  // namespace cepheus::sim
