// The payloads that a live fabric's switches hold at their gates, and those that they make.
//
// A host with its own area blocks only that. Hosts behind network interfaces share slots
// (ports/payload_pool.h): switches hold at most half of these, and one host at most its share of
// that half (wire/share.h), whichever hosts cooperate. Made payloads are in memory that no host can
// read. The switches' share of the half limits those of one call, and the links' shares of slots
// (link_admission.h) those under way.
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
  Made make(std::size_t bytes) override {
    const fabric::SenderNo own = pools_.geometry().switch_area();
    auto& share = hosts_[own];
    if (!share.has_space(free_)) return {};
    const fabric::PayloadPools::Taken taken = pools_.take_private(bytes);
    if (taken.ref == wire::kNoBuffer) return {};
    pools_.note_sender(taken.ref, own);
    share.add();
    --free_;
    return {taken.bytes, taken.ref};
  }

 private:
  fabric::PayloadPools& pools_;
  std::vector<wire::Share<std::uint32_t>> hosts_;
  std::uint32_t free_;
};

}  // namespace cepheus::live
