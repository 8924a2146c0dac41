// The oracle's values by operation and type, against examples: it shares no code with arithmetic/.
#include "fabric-sim/checked/reductions/values.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>

namespace cepheus::sim {
namespace {

using arithmetic::Operation;
using arithmetic::Type;

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
constexpr std::uint64_t kNan = 0xFFF8ull << 48;

TEST(ReducedValue, WrapsIntegers) {
  EXPECT_EQ(reduced_value({Operation::kSum, Type::kUint8}, 200, 100), 44u);
  EXPECT_EQ(reduced_value({Operation::kSum, Type::kInt64}, ~0ull, 3), 2u);
  EXPECT_EQ(reduced_value({Operation::kProduct, Type::kInt16}, 0xFFFF, 2), 0xFFFEu) << "-1 * 2";
}

TEST(ReducedValue, KnowsSigns) {
  EXPECT_EQ(reduced_value({Operation::kMin, Type::kInt8}, 0x80, 0x7F), 0x80u);
  EXPECT_EQ(reduced_value({Operation::kMin, Type::kUint8}, 0x80, 0x7F), 0x7Fu);
  EXPECT_EQ(reduced_value({Operation::kMax, Type::kUint64}, 1ull << 63, 1), 1ull << 63);
  EXPECT_EQ(reduced_value({Operation::kMax, Type::kInt64}, 1ull << 63, 1), 1u);
}

TEST(ReducedValue, OrdersFloatingPointNumbers) {
  constexpr mcast::ReductionUnits::Kind kMin{Operation::kMin, Type::kDouble};
  constexpr mcast::ReductionUnits::Kind kMax{Operation::kMax, Type::kFloat};
  EXPECT_EQ(reduced_value(kMin, bits(-1.5), bits(-2.5)), bits(-2.5));
  EXPECT_EQ(reduced_value(kMin, bits(0.0), bits(-0.0)), bits(-0.0));
  EXPECT_EQ(reduced_value(kMin, bits(1.0), 0x7FF0'0000'0000'0001), kNan) << "a signalling NaN";
  EXPECT_EQ(reduced_value(kMax, bits(-1.5F), bits(-2.5F)), bits(-1.5F));
  EXPECT_EQ(reduced_value(kMax, bits(-0.0F), bits(0.0F)), bits(0.0F));
}

TEST(ReducedValue, OfLogicalOperationsIsZeroOrOne) {
  EXPECT_EQ(reduced_value({Operation::kOr, Type::kUint32}, 8, 0), 1u);
  EXPECT_EQ(reduced_value({Operation::kAnd, Type::kUint32}, 8, 1), 1u);
  EXPECT_EQ(reduced_value({Operation::kXor, Type::kUint32}, 8, 1), 0u);
}

// Against all values of one byte.
TEST(MayResult, HoldsIfSomeValueExplainsIt) {
  for (int code = 1; code < static_cast<int>(arithmetic::kOperations); ++code) {
    for (const Type type : {Type::kUint8, Type::kInt8}) {
      const mcast::ReductionUnits::Kind kind{static_cast<Operation>(code), type};
      for (std::uint64_t value = 0; value < 256; value += 3) {
        std::array<bool, 256> possible{};
        for (std::uint64_t other = 0; other < 256; ++other) {
          possible[reduced_value(kind, value, other)] = true;
        }
        for (std::uint64_t result = 0; result < 256; ++result) {
          ASSERT_EQ(may_result(kind, value, result), possible[result])
              << name(kind.operation) << ' ' << value << ' ' << result;
        }
      }
    }
  }
}

TEST(MayResult, OfNumbersIsNeverAnotherNan) {
  constexpr mcast::ReductionUnits::Kind kMin{Operation::kMin, Type::kDouble};
  EXPECT_TRUE(may_result(kMin, bits(2.0), kNan));
  EXPECT_FALSE(may_result(kMin, bits(2.0), kNan + 1));
  EXPECT_FALSE(may_result(kMin, kNan, bits(2.0)));
}

}  // namespace
}  // namespace cepheus::sim
