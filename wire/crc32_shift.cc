// Polynomials over GF(2) are written reflected, as the CRC register is: the lowest bit of an n-bit
// word is the coefficient of x^(n-1). The product of an m-bit and an n-bit word then has m+n-1
// bits.
#include "wire/crc32_shift.h"

#include <isa-l/crc.h>

#include <array>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "wire/byte_order.h"

namespace cepheus::wire {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kPolynomial = 0xEDB88320;  // P without x^32
constexpr std::uint32_t kOne = 0x80000000;         // x^0

constexpr std::uint32_t times_x(std::uint32_t a) {
  return a >> 1 ^ ((a & 1) != 0 ? kPolynomial : 0);
}
constexpr std::uint32_t power_of_x(unsigned n) {
  std::uint32_t a = kOne;
  while (n-- > 0) a = times_x(a);
  return a;
}
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (int i = 0; i < 32; ++i) {
    product ^= b & (0u - (a >> 31));
    a <<= 1;
    b = times_x(b);
  }
  return product;
}

// Entry m is x^(8m+32) mod P: what a word contributes when m bytes follow it (a CRC carries x^32).
// Sized for the largest path MTU behind the headers of one packet.
constexpr std::size_t kShiftBlock = 4096;
constexpr std::size_t kMaxBytes = 128;
constexpr auto kShift = [] {
  std::array<std::uint32_t, kShiftBlock + kMaxBytes> table{};
  std::uint32_t a = power_of_x(32);
  for (std::uint32_t& entry : table) {
    entry = a;
    for (int bit = 0; bit < 8; ++bit) a = times_x(a);
  }
  return table;
}();
constexpr std::uint32_t kShiftBlockPower = power_of_x(8 * kShiftBlock);

#if defined(__x86_64__)

constexpr std::uint64_t kPower63 = std::uint64_t{power_of_x(63)} << 1;
constexpr std::uint64_t kBarrettMu = 0x1F7011641;  // x^64 / P
constexpr std::uint64_t kBarrettP = 0x1DB710641;   // P with x^32

#define CEPHEUS_CLMUL __attribute__((target("pclmul,sse4.1")))

CEPHEUS_CLMUL inline __m128i product(std::uint64_t word, std::uint32_t power) {
  return _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(word)),
                              _mm_cvtsi64_si128(power), 0x00);
}

// The 95-bit sum of word products, mod P: fold to 64 bits, then Barrett reduction
// (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009).
CEPHEUS_CLMUL inline std::uint32_t reduce(__m128i sum) {
  const __m128i low32 = _mm_cvtsi64_si128(0xFFFFFFFF);
  const __m128i power63 = _mm_cvtsi64_si128(static_cast<long long>(kPower63));
  const __m128i barrett =
      _mm_set_epi64x(static_cast<long long>(kBarrettP), static_cast<long long>(kBarrettMu));
  const __m128i folded = _mm_clmulepi64_si128(_mm_and_si128(sum, low32), power63, 0x00);
  const __m128i v = _mm_xor_si128(folded, _mm_slli_epi64(_mm_srli_si128(sum, 4), 1));
  const __m128i q = _mm_clmulepi64_si128(_mm_and_si128(v, low32), barrett, 0x00);
  const __m128i qp = _mm_clmulepi64_si128(_mm_and_si128(q, low32), barrett, 0x10);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(v, qp), 1));
}

// Each word's product is independent of the others; one reduction closes the sum.
CEPHEUS_CLMUL std::uint32_t shift_clmul(std::span<const std::uint8_t> bytes, std::size_t zeros) {
  const std::uint8_t* p = bytes.data();
  std::size_t left = bytes.size();
  __m128i sum = _mm_setzero_si128();
  for (; left >= 8; p += 8) {
    left -= 8;
    sum = _mm_xor_si128(sum, product(load_native<std::uint64_t>(p), kShift[left + zeros]));
  }
  // Shorter words are padded with leading zeros, which change nothing.
  if (left >= 4) {
    left -= 4;
    sum = _mm_xor_si128(
        sum, product(std::uint64_t{load_native<std::uint32_t>(p)} << 32, kShift[left + zeros]));
    p += 4;
  }
  for (; left > 0; ++p) {
    left -= 1;
    sum = _mm_xor_si128(sum, product(std::uint64_t{*p} << 56, kShift[left + zeros]));
  }
  return reduce(sum);
}

#undef CEPHEUS_CLMUL

bool cpu_has_clmul() {
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}
const bool kHasClmul = cpu_has_clmul();

#endif

std::uint32_t shift_portable(std::span<const std::uint8_t> bytes, std::size_t zeros) {
  // ISA-L inverts on the way in and out: ~0 in is a register of 0.
  const std::uint32_t crc = ~crc32_gzip_refl(~0u, bytes.data(), bytes.size());
  return multiply(crc,
                  zeros < 4 ? power_of_x(static_cast<unsigned>(8 * zeros)) : kShift[zeros - 4]);
}

// Beyond the table (no path MTU is that long): whole blocks of zeros, one by one.
template <typename Shift>
std::uint32_t shift_any(std::span<const std::uint8_t> bytes, std::size_t zeros, Shift shift) {
  if (bytes.size() > kMaxBytes) {
    const auto head = bytes.first(kMaxBytes);
    const auto rest = bytes.subspan(kMaxBytes);
    return shift_any(head, rest.size() + zeros, shift) ^ shift_any(rest, zeros, shift);
  }
  std::uint32_t crc = shift(bytes, zeros <= kShiftBlock ? zeros : zeros % kShiftBlock);
  if (zeros <= kShiftBlock) return crc;
  for (std::size_t n = zeros / kShiftBlock; n > 0; --n) crc = multiply(crc, kShiftBlockPower);
  return crc;
}

}  // namespace

std::uint32_t crc32_shift(std::span<const std::uint8_t> bytes, std::size_t zeros) {
#if defined(__x86_64__)
  if (kHasClmul) [[likely]] {
    if (zeros <= kShiftBlock && bytes.size() <= kMaxBytes) [[likely]]
      return shift_clmul(bytes, zeros);
    return shift_any(bytes, zeros, shift_clmul);
  }
#endif
  return crc32_shift_portable(bytes, zeros);
}

std::uint32_t crc32_shift_portable(std::span<const std::uint8_t> bytes, std::size_t zeros) {
  return shift_any(bytes, zeros, shift_portable);
}

}  // namespace cepheus::wire
