#include "wire/extension_headers.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

template <typename Header>
class ExtensionHeader : public testing::Test {};
using Headers = testing::Types<Reth, AtomicEth, Aeth, AtomicAckEth, Deth, ImmDt, Ieth>;
TYPED_TEST_SUITE(ExtensionHeader, Headers);

// Bits that no value holds: sent as 0.
template <typename Header>
void clear_reserved(std::array<std::uint8_t, Header::kSize>& bytes) {
  if constexpr (std::is_same_v<Header, Aeth>) bytes[0] &= 0x7F;
  if constexpr (std::is_same_v<Header, Deth>) bytes[4] = 0;
}

TYPED_TEST(ExtensionHeader, RestoresAnyBytes) {
  rc::check([] {
    using Bytes = std::array<std::uint8_t, TypeParam::kSize>;
    auto bytes = *rc::gen::container<Bytes>(rc::gen::arbitrary<std::uint8_t>());
    const auto header = TypeParam::parse(bytes);
    RC_ASSERT(header.has_value());
    clear_reserved<TypeParam>(bytes);
    RC_ASSERT(header_bytes(*header) == bytes);
  });
}

TYPED_TEST(ExtensionHeader, RefusesEveryShortLength) {
  const std::array<std::uint8_t, TypeParam::kSize> bytes{};
  expect_refused_if_short<TypeParam>(bytes);
}

TYPED_TEST(ExtensionHeader, HasOnlyZeroFieldsAtFirst) {
  std::array<std::uint8_t, TypeParam::kSize> expected{};
  if constexpr (std::is_same_v<TypeParam, Aeth>) expected[0] = Aeth::kNoCreditLimit;
  EXPECT_EQ(header_bytes(TypeParam{}), expected);
}

TEST(Reth, ReadsEveryFieldFromItsPlace) {
  const std::array<std::uint8_t, 16> bytes = {1, 2,  3,  4,  5,  6,  7,  8,
                                              9, 10, 11, 12, 13, 14, 15, 16};
  EXPECT_EQ(Reth::parse(bytes), (Reth{0x0102030405060708, 0x090A0B0C, 0x0D0E0F10}));
}

TEST(AtomicEth, ReadsEveryFieldFromItsPlace) {
  std::array<std::uint8_t, AtomicEth::kSize> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i + 1);
  EXPECT_EQ(AtomicEth::parse(bytes),
            (AtomicEth{0x0102030405060708, 0x090A0B0C, 0x0D0E0F1011121314, 0x15161718191A1B1C}));
}

TEST(Deth, ReadsEveryFieldFromItsPlace) {
  const std::array<std::uint8_t, 8> bytes = {0x11, 0x11, 0x22, 0x33, 0xFF, 0x00, 0x01, 0x02};
  EXPECT_EQ(Deth::parse(bytes), (Deth{0x11112233, Qpn(0x000102)}));
}

TEST(Aeth, ReadsTheFourKindsOfSyndrome) {
  const auto parsed = [](std::uint8_t syndrome) {
    return *Aeth::parse(std::array<std::uint8_t, 4>{syndrome, 0, 1, 2});
  };
  EXPECT_EQ(parsed(0x1F), (Aeth{AckKind::kAck, Aeth::kNoCreditLimit, 0x102}));
  EXPECT_EQ(parsed(0x2C), (Aeth{AckKind::kRnrNak, 12, 0x102}));
  EXPECT_EQ(parsed(0x41).kind, AckKind::kReserved);
  EXPECT_TRUE(parsed(0x60).is_sequence_nak());
  EXPECT_FALSE(parsed(0x60).is_fatal_nak());
  for (const std::uint8_t syndrome : {0x61, 0x62, 0x63, 0x64}) {
    EXPECT_TRUE(parsed(syndrome).is_fatal_nak());
    EXPECT_FALSE(parsed(syndrome).is_sequence_nak());
  }
  EXPECT_FALSE(parsed(0x65).is_fatal_nak());
  EXPECT_FALSE(parsed(0x01).is_fatal_nak());
}

// IBTA table 45 doubles every two codes, with one and a half times the power in between.
TEST(RnrTimer, FollowsTheTableOfCodes) {
  using std::chrono::microseconds;
  EXPECT_EQ(rnr_timer_duration(0), microseconds(655'360));
  EXPECT_EQ(rnr_timer_duration(1), microseconds(10));
  for (int code = 2; code < 32; ++code) {
    const int power = 10 << code / 2;
    const int expected = code % 2 == 0 ? power : power + power / 2;
    EXPECT_EQ(rnr_timer_duration(static_cast<std::uint8_t>(code)), microseconds(expected)) << code;
  }
  EXPECT_EQ(rnr_timer_duration(31), microseconds(491'520));
}

TEST(RnrTimer, PrefersTheLongerOfTwo) {
  for (int a = 0; a < 32; ++a) {
    for (int b = 0; b < 32; ++b) {
      const std::uint8_t longer =
          longer_rnr_timer(static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b));
      EXPECT_TRUE(longer == a || longer == b);
      EXPECT_EQ(longer, a == 0 || b == 0 ? 0 : std::max(a, b));
    }
  }
}

}  // namespace
}  // namespace cepheus::wire
