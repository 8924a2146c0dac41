// Parsers refuse only data that is too short; values are not checked here. Reserved bits are sent
// as 0 and ignored on receipt. RNR timer codes are looked up in IBTA's table 45, with the code's
// lower five bits.
#include "wire/extension_headers.h"

#include <array>

#include "wire/byte_order.h"

namespace cepheus::wire {

std::optional<Reth> Reth::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  return Reth{load_be64(data.data()), load_be32(data.data() + 8), load_be32(data.data() + 12)};
}

void Reth::emit(std::span<std::uint8_t, kSize> out) const {
  store_be64(out.data(), virtual_address);
  store_be32(out.data() + 8, rkey);
  store_be32(out.data() + 12, dma_length);
}

std::optional<AtomicEth> AtomicEth::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  return AtomicEth{load_be64(data.data()), load_be32(data.data() + 8), load_be64(data.data() + 12),
                   load_be64(data.data() + 20)};
}

void AtomicEth::emit(std::span<std::uint8_t, kSize> out) const {
  store_be64(out.data(), virtual_address);
  store_be32(out.data() + 8, rkey);
  store_be64(out.data() + 12, swap_add);
  store_be64(out.data() + 20, compare);
}

// The syndrome's top bit is reserved: sent as 0, ignored on receipt.
std::optional<Aeth> Aeth::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  Aeth a;
  a.kind = static_cast<AckKind>(data[0] >> 5 & 0x3);
  a.value = data[0] & 0x1F;
  a.msn = load_be24(data.data() + 1);
  return a;
}

void Aeth::emit(std::span<std::uint8_t, kSize> out) const {
  out[0] = static_cast<std::uint8_t>((static_cast<unsigned>(kind) & 0x3) << 5 | (value & 0x1F));
  store_be24(out.data() + 1, msn);
}

std::optional<AtomicAckEth> AtomicAckEth::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  return AtomicAckEth{load_be64(data.data())};
}

void AtomicAckEth::emit(std::span<std::uint8_t, kSize> out) const {
  store_be64(out.data(), original);
}

Duration rnr_timer_duration(std::uint8_t code) {
  // In units of 10 us.
  static constexpr std::array<std::uint32_t, 32> kUnits = {
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return std::chrono::microseconds{10} * kUnits[code & 0x1F];
}

std::uint8_t longer_rnr_timer(std::uint8_t a, std::uint8_t b) {
  return rnr_timer_duration(a) >= rnr_timer_duration(b) ? a : b;
}

std::optional<Deth> Deth::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  return Deth{load_be32(data.data()), Qpn(load_be24(data.data() + 5))};
}

void Deth::emit(std::span<std::uint8_t, kSize> out) const {
  store_be32(out.data(), qkey);
  store_be32(out.data() + 4, source_qp.value());  // the reserved byte is 0: a QPN has 24 bits
}

std::optional<ImmDt> ImmDt::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  return ImmDt{load_be32(data.data())};
}

void ImmDt::emit(std::span<std::uint8_t, kSize> out) const { store_be32(out.data(), value); }

std::optional<Ieth> Ieth::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  return Ieth{load_be32(data.data())};
}

void Ieth::emit(std::span<std::uint8_t, kSize> out) const { store_be32(out.data(), rkey); }

}  // namespace cepheus::wire
