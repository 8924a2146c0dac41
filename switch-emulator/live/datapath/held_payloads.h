// The payloads that the gates of a live fabric's switches hold.
//
// A host with its own area blocks only that. Hosts behind network interfaces share slots
// (ports/payload_pool.h): switches hold at most half of these, and one host at most its share of
// that half (wire/share.h), whichever hosts cooperate.
#pragma once

#include <vector>

#include "switch-emulator/engine/group/payload_store.h"
#include "switch-emulator/ports/payload_pool.h"

namespace cepheus::live {

class HeldPayloads final : public fabric::PayloadStore {
 public:
  explicit HeldPayloads(fabric::PayloadPools& pools)
      : pools_(pools), hosts_(pools.geometry().areas), free_(pools.geometry().slots_per_area / 2) {}

  bool hold(wire::BufferRef buffer) override {
    if (pools_.is_common(buffer)) {
      auto& share = hosts_[pools_.sender_of(buffer)];
      if (!share.has_space(free_)) return false;
      share.add();
      --free_;
    }
    pools_.hold(buffer);
    return true;
  }
  void release(wire::BufferRef buffer) override {
    if (pools_.is_common(buffer)) {
      hosts_[pools_.sender_of(buffer)].remove();
      ++free_;
    }
    pools_.drop(buffer);
  }

 private:
  fabric::PayloadPools& pools_;
  std::vector<wire::Share<std::uint32_t>> hosts_;
  std::uint32_t free_;
};

}  // namespace cepheus::live
