// Protection domains and memory regions of an open device.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "nic-emulator/engine/verbs_types.h"
#include "nic-emulator/verbs/abi.h"
#include "nic-emulator/verbs/device/context.h"
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
  MemoryRegion(ProtectionDomain& domain, void* address, std::size_t bytes, std::uint64_t iova,
               unsigned access, const MemoryKeys& keys);
  static MemoryRegion& of(ibv_mr* mr) { return *static_cast<MemoryRegion*>(mr); }
  // As ibv_rereg_mr; an errno, or 0. After an error the region is as it was.
  int change(int flags, ibv_pd* domain, void* address, std::size_t bytes, unsigned access);

 private:
  std::optional<Reference> in_domain_;
  std::uint64_t iova_;
  unsigned access_;
};

}  // namespace cepheus::verbs
