// CRC-32 of a few bytes with many zeros behind them, in time that does not depend on the zeros.
//
// CRC-32 is linear: if two messages of one length differ by d (xor), their CRCs differ by the CRC
// of d started at 0. A rewritten header in front of an unchanged payload is such a d: a few bytes,
// then payload-many zeros. Zeros multiply the register by x^(8n) mod P, which a table holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cepheus::wire {

// The reflected CRC-32 register (P = 0x04C11DB7) after `bytes` and `zeros` zero bytes, from a
// register of 0 and without final inversion. Carry-less multiplication where the CPU has it.
std::uint32_t crc32_shift(std::span<const std::uint8_t> bytes, std::size_t zeros);

// The same without special instructions.
std::uint32_t crc32_shift_portable(std::span<const std::uint8_t> bytes, std::size_t zeros);

}  // namespace cepheus::wire
