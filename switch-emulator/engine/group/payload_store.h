// The engine's view of payload buffers: it calls this before it keeps a frame longer than a call, and
// for payloads that it fills itself.
#pragma once

#include <span>
#include <utility>

#include "wire/frame.h"

namespace cepheus::fabric {

// Drivers implement it over their buffers. It outlives the engine.
class PayloadStore {
 public:
  // Takes a reference to the buffer. False: the engine already holds as many buffers as it may.
  virtual bool hold(wire::BufferRef buffer) = 0;
  virtual void release(wire::BufferRef buffer) = 0;
  // A buffer of `bytes` that the engine fills, with one reference, which the engine holds. No
  // buffer: none is free, or the engine already holds as many as it may.
  struct Made {
    std::span<std::uint8_t> bytes;
    wire::BufferRef buffer = wire::kNoBuffer;
  };
  virtual Made make(std::size_t bytes) = 0;

 protected:
  ~PayloadStore() = default;
};

// A reference that the engine holds; its destructor releases it.
class HeldPayload {
 public:
  HeldPayload() = default;  // holds nothing
  // Precondition: `store` has returned true for hold(buffer), or has made it.
  HeldPayload(PayloadStore& store, wire::BufferRef buffer) : store_(&store), buffer_(buffer) {}
  HeldPayload(HeldPayload&& other) noexcept
      : store_(std::exchange(other.store_, nullptr)), buffer_(other.buffer_) {}
  HeldPayload& operator=(HeldPayload&& other) noexcept {
    std::swap(store_, other.store_);
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~HeldPayload() {
    if (store_ != nullptr) store_->release(buffer_);
  }

 private:
  PayloadStore* store_ = nullptr;
  wire::BufferRef buffer_ = wire::kNoBuffer;
};

}  // namespace cepheus::fabric
