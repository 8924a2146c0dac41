// The NIC's shared receive queues by number.
#pragma once

#include <memory>
#include <vector>

#include "nic-emulator/engine/shared_receive_queue.h"

namespace cepheus::rnic {

class SrqTable {
 public:
  explicit SrqTable(std::uint32_t max_srqs) : max_srqs_(max_srqs) {}

  // Null: all in use.
  SharedReceiveQueue* create(const SrqInit& init) {
    SrqId id = 0;
    while (id < queues_.size() && queues_[id]) ++id;
    if (id >= max_srqs_) return nullptr;
    if (id == queues_.size()) queues_.emplace_back();
    queues_[id] = std::make_unique<SharedReceiveQueue>(id, init);
    return queues_[id].get();
  }
  void destroy(SrqId id) { queues_[id].reset(); }
  SharedReceiveQueue* find(SrqId id) const {
    return id < queues_.size() ? queues_[id].get() : nullptr;
  }

 private:
  std::uint32_t max_srqs_;
  std::vector<std::unique_ptr<SharedReceiveQueue>> queues_;
};

}  // namespace cepheus::rnic
