// The payloads that the switches of a live fabric hold, at gates.
//
// A host with an area of its own pins nothing but that. Hosts behind network interfaces have slots in
// common (ports/payload_pool.h): whichever of them send together, switches hold no more than half of
// these, and one host has a share of that half (wire/share.h).
#pragma once

#include <vector>

#include "switch-emulator/engine/payload_store.h"
#include "switch-emulator/ports/payload_pool.h"

namespace cepheus::live {

class HeldPayloads final : public fabric::PayloadStore {
 public:
  explicit HeldPayloads(fabric::PayloadPools& pools)
      : pools_(pools), hosts_(pools.geometry().areas), free_(pools.geometry().slots_per_area / 2) {}

  bool hold(wire::BufferRef buffer) override {
    if (pools_.is_common(buffer)) {
      auto& share = hosts_[pools_.sender_of(buffer)];
      if (!share.has_room(free_)) return false;
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
