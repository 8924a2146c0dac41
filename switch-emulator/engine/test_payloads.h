// For tests: payload buffers with reference counts.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "switch-emulator/engine/group/payload_store.h"

namespace cepheus::fabric {

class TestPayloads final : public PayloadStore {
 public:
  // A buffer of these bytes, with one reference.
  wire::BufferRef add(std::vector<std::uint8_t> bytes) {
    buffers_[next_] = {std::move(bytes), 1};
    return next_++;
  }
  std::span<const std::uint8_t> bytes(wire::BufferRef buffer) const {
    return buffers_.at(buffer).bytes;
  }
  bool hold(wire::BufferRef buffer) override {
    if (has_space) ++buffers_.at(buffer).references;
    return has_space;
  }
  void release(wire::BufferRef buffer) override {
    if (--buffers_.at(buffer).references == 0) buffers_.erase(buffer);
  }
  Made make(std::size_t bytes) override {
    if (!has_space) return {};
    const wire::BufferRef buffer = add(std::vector<std::uint8_t>(bytes));
    return {buffers_.at(buffer).bytes, buffer};
  }
  std::size_t in_use() const { return buffers_.size(); }

  bool has_space = true;  // the engine may hold more

 private:
  struct Buffer {
    std::vector<std::uint8_t> bytes;
    int references = 0;
  };
  std::map<wire::BufferRef, Buffer> buffers_;
  wire::BufferRef next_ = 1;
};

}  // namespace cepheus::fabric
