// Senders' shares of one port's ring: whatever one of them sends, others still find room.
//
// A sender may hold twice as many entries as are free (dynamic thresholds, Choudhury and Hahne
// 1998), as of payload slots (ports/payload_pool.h): two thirds of the ring alone, two fifths beside
// another that takes what it can get. Who takes all it can leaves a third to whoever comes.
#pragma once

#include <array>
#include <cstdint>

namespace cepheus::fabric {

// Who put a frame into the fabric: the index of a host, or kFabricItself.
using SenderNo = std::uint32_t;
inline constexpr SenderNo kFabricItself = 0xFFFFFFFF;

class RingShare {
 public:
  // Senders whose numbers are so far apart share.
  static constexpr std::size_t kClasses = 256;
  using Class = std::uint8_t;

  static Class of(SenderNo sender) { return static_cast<Class>(sender % kClasses); }
  bool has_room(Class sender, std::uint32_t free) const { return held_[sender] < 2 * free; }
  void add(Class sender) { ++held_[sender]; }
  void remove(Class sender) { --held_[sender]; }
  void clear() { held_ = {}; }

 private:
  std::array<std::uint16_t, kClasses> held_{};
};

}  // namespace cepheus::fabric
