// Protection domains and memory regions of an open device.
#pragma once

#include <atomic>
#include <memory>

#include "nic-emulator/engine/verbs_types.h"
#include "nic-emulator/verbs/abi.h"
#include "nic-emulator/verbs/context.h"
#include "nic-emulator/verbs/engine_names.h"

namespace cepheus::verbs {

class ProtectionDomain final : public ibv_pd {
 public:
  explicit ProtectionDomain(Context& owner);
  static ProtectionDomain& of(ibv_pd* pd) { return *static_cast<ProtectionDomain*>(pd); }

  Context& owner() const { return Context::of(context); }
  PdId id() const { return handle; }
  // Regions and QPs that use it.
  std::atomic<int>& users() { return users_; }

 private:
  std::shared_ptr<Context> context_;
  Reference in_nic_;
  std::atomic<int> users_{0};
};

class MemoryRegion final : public ibv_mr {
 public:
  MemoryRegion(ProtectionDomain& domain, void* address, std::size_t bytes, const MemoryKeys& keys);
  static MemoryRegion& of(ibv_mr* mr) { return *static_cast<MemoryRegion*>(mr); }

 private:
  Reference in_domain_;
};

}  // namespace cepheus::verbs
