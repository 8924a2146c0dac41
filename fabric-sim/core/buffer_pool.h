// Payload buffers with reference counts, in place of the live fabric's shared memory. A switch may
// hold any number of them.
#pragma once

#include <cassert>
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

}  // namespace cepheus::sim
