// Senders' shares of a resource that frames of all senders need: a port's ring, a link's queue.
#pragma once

#include <array>
#include <cstdint>

#include "wire/share.h"

namespace cepheus::fabric {

// The sender of a frame: the index of a host, or kFabricItself.
using SenderNo = std::uint32_t;
inline constexpr SenderNo kFabricItself = 0xFFFFFFFF;

template <typename Amount>
class SenderShares {
 public:
  // Hosts with numbers this far apart have one share together.
  static constexpr std::size_t kClasses = 256;
  using Class = std::uint16_t;

  static Class of(SenderNo sender) {
    return static_cast<Class>(sender == kFabricItself ? kClasses : sender % kClasses);
  }
  wire::Share<Amount>& operator[](Class sender) { return shares_[sender]; }

 private:
  std::array<wire::Share<Amount>, kClasses + 1> shares_{};  // the fabric's own is the last
};
// Entries of a ring.
using RingShares = SenderShares<std::uint16_t>;

}  // namespace cepheus::fabric
