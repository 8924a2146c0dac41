// Immediate data of a reduction's packets: contributions, partial results and results
// (docs/protocol.md, "Reductions").
//
//   |  op   | type  |     epoch     |             unit              |
//      4       4       8, lowest               16, lowest
//
// Each packet is one SEND Only with Immediate. A unit's PSN is the group's first PSN and the unit's
// number, so a receiver checks `unit` against the PSN.
#pragma once

#include <cstdint>

namespace cepheus::wire {

struct ReductionImm {
  std::uint8_t operation = 0;  // arithmetic::Operation, 4 bits
  std::uint8_t type = 0;       // arithmetic::Type, 4 bits
  std::uint8_t epoch = 0;
  std::uint16_t unit = 0;

  static constexpr ReductionImm from(std::uint32_t imm) {
    return {static_cast<std::uint8_t>(imm >> 28), static_cast<std::uint8_t>(imm >> 24 & 0xF),
            static_cast<std::uint8_t>(imm >> 16), static_cast<std::uint16_t>(imm)};
  }
  constexpr std::uint32_t value() const {
    return std::uint32_t{operation} << 28 | (type & 0xFu) << 24 | std::uint32_t{epoch} << 16 | unit;
  }
  // Operation and type of one byte, as what() has them.
  static constexpr ReductionImm from_what(std::uint8_t what) {
    return from(std::uint32_t{what} << 24);
  }
  // Operation and type in one byte, as in the immediate.
  constexpr std::uint8_t what() const {
    return static_cast<std::uint8_t>(operation << 4 | (type & 0xF));
  }
  friend constexpr bool operator==(const ReductionImm&, const ReductionImm&) = default;
};

}  // namespace cepheus::wire
