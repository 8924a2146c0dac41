// Address handles as verbs programs hold them: destinations of datagrams.
#pragma once

#include "nic-emulator/verbs/memory/memory.h"

namespace cepheus::verbs {

class AddressHandle final : public ibv_ah {
 public:
  AddressHandle(ProtectionDomain& domain, const AddressVector& destination)
      : ibv_ah{},
        destination_(destination),
        in_domain_(domain.users()),
        in_nic_(domain.owner().nic().objects().handles) {
    context = domain.context;
    pd = &domain;
    handle = domain.owner().next_handle();
  }
  // Precondition: not null, and of our device.
  static const AddressHandle& of(const ibv_ah* ah) {
    return *static_cast<const AddressHandle*>(ah);
  }
  const AddressVector& destination() const { return destination_; }

 private:
  const AddressVector destination_;
  Reference in_domain_;
  Reference in_nic_;  // ends before the domain may
};

}  // namespace cepheus::verbs
