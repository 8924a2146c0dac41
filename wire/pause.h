// Priority flow control (IEEE 802.1Qbb; the frame is 802.1Q-2018, 36.2, a MAC control frame of IEEE
// 802.3, 31): "send nothing of these priorities for this time".
//
//   0               1               2               3
//   |        opcode 0x0101          |     priorities (bit 0-7)      |
//   |    time of priority 0         |    time of priority 1         |
//   |            ...                |    time of priority 7         |
//   |    zeros, up to Ethernet's least payload of 46 bytes          |
//
// Between Ethernet's header and its checksum. Times count quanta of 512 bits at the link's rate; 0
// ends a pause.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "wire/byte_order.h"
#include "wire/ethernet.h"
#include "wire/frame.h"

namespace cepheus::wire {

struct PauseFrame {
  static constexpr std::uint16_t kEtherType = 0x8808;
  static constexpr std::uint16_t kOpcode = 0x0101;
  static constexpr Mac kDestination{
      {0x01, 0x80, 0xC2, 0x00, 0x00, 0x01}};  // bridges do not forward it
  static constexpr std::size_t kPriorities = 8;
  static constexpr std::size_t kPayload = 46;
  static constexpr std::uint64_t kQuantumBits = 512;
  static constexpr std::uint16_t kLongest = 0xFFFF;

  std::array<std::optional<std::uint16_t>, kPriorities> quanta;  // by priority; empty: not named

  static bool is_one(const Frame& frame) {
    return frame.icrc_state == Icrc::kNone && frame.header_len >= Ethernet::kSize &&
           load_be16(frame.bytes.data() + 12) == kEtherType;
  }
  // Empty unless it is a pause frame of full length. Bytes behind the times are ignored.
  static std::optional<PauseFrame> parse(const Frame& frame);
  // The whole frame, with its payload inline.
  void emit(Frame& frame, Mac source) const;
  friend bool operator==(const PauseFrame&, const PauseFrame&) = default;
};

// Duration of `quanta`. Precondition: the rate is limited.
Duration pause_time(std::uint16_t quanta, BitRate rate);

}  // namespace cepheus::wire
