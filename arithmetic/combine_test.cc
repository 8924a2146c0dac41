// Each operation on each type against a reference that is computed in another way.
#include "arithmetic/combine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "arithmetic/test_values.h"

namespace cepheus::arithmetic {
namespace {

// Both packets at any alignment, among bytes that must stay.
template <typename T>
std::vector<T> combined(Operation operation, const std::vector<T>& a, const std::vector<T>& b,
                        std::size_t shift = 0) {
  constexpr std::size_t kBeside = 32;
  const std::size_t bytes = a.size() * sizeof(T);
  std::vector<std::uint8_t> result(bytes + 2 * kBeside, 0xA5), operand(bytes + 2 * kBeside, 0x5A);
  std::uint8_t* const at = result.data() + kBeside / 2 + shift % 9;
  std::uint8_t* const other = operand.data() + kBeside / 2 + shift / 9;
  copy_values(a, at);
  copy_values(b, other);
  Batch(*Combiner::find(operation, type_of<T>())).combine(at, other, bytes);
  EXPECT_TRUE(std::equal(other, other + bytes, reinterpret_cast<const std::uint8_t*>(b.data())));
  for (const std::uint8_t* byte = result.data(); byte != at; ++byte) EXPECT_EQ(*byte, 0xA5);
  for (const std::uint8_t* byte = at + bytes; byte != result.data() + result.size(); ++byte)
    EXPECT_EQ(*byte, 0xA5);
  return values_at<T>(at, a.size());
}

template <typename T>
class Combine : public testing::Test {};
TYPED_TEST_SUITE(Combine, AllTypes);

TYPED_TEST(Combine, HasTheBitsOfTheReference) {
  using T = TypeParam;
  EXPECT_TRUE(rc::check([] {
    const auto pairs = *rc::gen::container<std::vector<std::pair<Bits<T>, Bits<T>>>>(
        rc::gen::pair(any_bits<T>(), any_bits<T>()));
    const auto shift = *rc::gen::inRange<std::size_t>(0, 81);
    std::vector<T> a, b;
    for (const auto& [x, y] : pairs) {
      a.push_back(std::bit_cast<T>(x));
      b.push_back(std::bit_cast<T>(y));
    }
    for (const Operation operation : operations_on<T>()) {
      const auto got = combined(operation, a, b, shift);
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (bits_of(got[i]) != bits_of(reference(operation, a[i], b[i]))) {
          RC_FAIL(text(operation, a[i], b[i], got[i]));
        }
      }
    }
  }));
}

TYPED_TEST(Combine, IsRightForAllPairsOfSpecialValues) {
  using T = TypeParam;
  for (const Operation operation : operations_on<T>()) {
    for (const T a : special_values<T>()) {
      for (const T b : special_values<T>()) {
        // More than a vector instruction takes, and a rest.
        const auto got = combined<T>(operation, std::vector<T>(37, a), std::vector<T>(37, b));
        for (const T each : got) {
          ASSERT_EQ(bits_of(each), bits_of(reference(operation, a, b)))
              << text(operation, a, b, each);
        }
      }
    }
  }
}

TYPED_TEST(Combine, HasTheSameBitsInBothOrders) {
  using T = TypeParam;
  EXPECT_TRUE(rc::check([] {
    const std::vector<T> a{std::bit_cast<T>(*any_bits<T>())}, b{std::bit_cast<T>(*any_bits<T>())};
    for (const Operation operation : operations_on<T>()) {
      RC_ASSERT(bits_of(combined(operation, a, b)[0]) == bits_of(combined(operation, b, a)[0]));
    }
  }));
}

TYPED_TEST(Combine, IsAssociativeUnlessItDependsOnPairs) {
  using T = TypeParam;
  EXPECT_TRUE(rc::check([] {
    const std::vector<T> a{std::bit_cast<T>(*any_bits<T>())}, b{std::bit_cast<T>(*any_bits<T>())},
        c{std::bit_cast<T>(*any_bits<T>())};
    for (const Operation op : operations_on<T>()) {
      if (Combiner::find(op, type_of<T>())->depends_on_pairs()) continue;
      RC_ASSERT(bits_of(combined(op, combined(op, a, b), c)[0]) ==
                bits_of(combined(op, a, combined(op, b, c))[0]));
    }
  }));
}

TYPED_TEST(Combine, LeavesAPacketWithoutValuesAsItIs) {
  using T = TypeParam;
  for (const Operation operation : operations_on<T>()) {
    EXPECT_TRUE(combined<T>(operation, {}, {}).empty());
    Batch(*Combiner::find(operation, type_of<T>())).combine(nullptr, nullptr, 0);
  }
}

TYPED_TEST(Combine, TakesAnyAlignmentAndLength) {
  using T = TypeParam;
  std::vector<T> a, b;
  for (int i = 0; i < 70; ++i) {
    a.push_back(static_cast<T>(i));
    b.push_back(static_cast<T>(2 * i % 61));
    for (std::size_t shift = 0; shift < 81; ++shift) {
      const auto got = combined(Operation::kMax, a, b, shift);
      for (std::size_t k = 0; k < a.size(); ++k) ASSERT_EQ(got[k], std::max(a[k], b[k]));
    }
  }
}

// On a machine of the other order of bytes, as combine.cc has its loops there.
template <typename T>
auto swapped_loops() {
  using Loop = void (*)(std::uint8_t * result, const std::uint8_t* operand, std::size_t bytes);
  std::map<Operation, Loop> loops{{Operation::kMin, combine<Min, T, true>},
                                  {Operation::kMax, combine<Max, T, true>},
                                  {Operation::kSum, combine<Sum, T, true>},
                                  {Operation::kProduct, combine<Product, T, true>}};
  if constexpr (std::is_integral_v<T>) {
    loops.insert({{Operation::kBitOr, combine<BitOr, T, true>},
                  {Operation::kBitAnd, combine<BitAnd, T, true>},
                  {Operation::kBitXor, combine<BitXor, T, true>},
                  {Operation::kOr, combine<Or, T, true>},
                  {Operation::kAnd, combine<And, T, true>},
                  {Operation::kXor, combine<Xor, T, true>}});
  }
  return loops;
}

template <typename T>
std::vector<std::uint8_t> swapped_packet(const std::vector<T>& values) {
  std::vector<std::uint8_t> packet(values.size() * sizeof(T));
  copy_values(values, packet.data());
  constexpr std::ptrdiff_t kSize = sizeof(T);
  for (auto at = packet.begin(); at != packet.end(); at += kSize) std::reverse(at, at + kSize);
  return packet;
}

TYPED_TEST(Combine, OfTheOtherOrderOfBytesIsRight) {
  using T = TypeParam;
  const auto loops = swapped_loops<T>();
  for (const Operation operation : operations_on<T>()) {
    for (const T a : special_values<T>()) {
      const std::vector<T> values = special_values<T>();
      auto result = swapped_packet(std::vector<T>(values.size(), a));
      const auto operand = swapped_packet(values);
      loops.at(operation)(result.data(), operand.data(), result.size());
      const auto got = values_at<T>(
          swapped_packet(values_at<T>(result.data(), values.size())).data(), values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(bits_of(got[i]), bits_of(reference(operation, a, values[i])))
            << text(operation, a, values[i], got[i]);
    }
  }
}

TEST(Combiner, RefusesWhatMpiDoesNotDefine) {
  for (const Type type : {Type::kFloat, Type::kDouble}) {
    for (const Operation operation : {Operation::kBitOr, Operation::kBitAnd, Operation::kBitXor,
                                      Operation::kOr, Operation::kAnd, Operation::kXor}) {
      EXPECT_FALSE(Combiner::find(operation, type)) << name(operation) << ' ' << name(type);
    }
  }
  std::size_t known = 0;
  for (unsigned operation = 0; operation < 256; ++operation) {
    for (unsigned type = 0; type < 256; ++type) {
      known += Combiner::find(static_cast<std::uint8_t>(operation), static_cast<std::uint8_t>(type))
                   .has_value();
    }
  }
  EXPECT_EQ(known, 10u * 8 + 4u * 2);
  EXPECT_FALSE(Combiner::find(0, 0)) << "a barrier has no values";
}

TEST(Combiner, NamesTheOperationsThatDependOnPairs) {
  EXPECT_TRUE(Combiner::find(Operation::kSum, Type::kDouble)->depends_on_pairs());
  EXPECT_TRUE(Combiner::find(Operation::kProduct, Type::kFloat)->depends_on_pairs());
  EXPECT_FALSE(Combiner::find(Operation::kMin, Type::kDouble)->depends_on_pairs());
  EXPECT_FALSE(Combiner::find(Operation::kSum, Type::kInt64)->depends_on_pairs());
  EXPECT_EQ(Combiner::find(Operation::kSum, Type::kInt64)->size(), 8u);
  EXPECT_FALSE(Combiner::find(Operation::kSum, Type::kInt64)->is_floating());
}

// Values written out, so that an error of the reference does not hide one.
TEST(Combiner, ComputesWhatTheStandardsDefine) {
  const auto sum = [](auto a, auto b) {
    return combined<decltype(a)>(Operation::kSum, {a}, {b})[0];
  };
  const auto min = [](auto a, auto b) {
    return combined<decltype(a)>(Operation::kMin, {a}, {b})[0];
  };
  const auto max = [](auto a, auto b) {
    return combined<decltype(a)>(Operation::kMax, {a}, {b})[0];
  };
  EXPECT_EQ(sum(std::int8_t{127}, std::int8_t{1}), -128);
  EXPECT_EQ(sum(std::int16_t{-32768}, std::int16_t{-1}), 32767);
  EXPECT_EQ(sum(std::numeric_limits<std::int64_t>::max(), std::int64_t{1}),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(min(std::uint64_t{0}, ~std::uint64_t{0}), 0u);
  EXPECT_EQ(combined<std::uint16_t>(Operation::kProduct, {65535}, {65535})[0], 1);
  EXPECT_EQ(combined<std::int32_t>(Operation::kXor, {7}, {-1})[0], 0);
  EXPECT_EQ(combined<std::int32_t>(Operation::kAnd, {1 << 16}, {-1})[0], 1);
  const double infinity = std::numeric_limits<double>::infinity();
  constexpr std::uint64_t kNan = 0xFFF8'0000'0000'0000;
  const double payload = std::bit_cast<double>(std::uint64_t{0x7FF8'0000'0000'1234});
  const double signalling = std::bit_cast<double>(std::uint64_t{0x7FF0'0000'0000'0001});
  EXPECT_EQ(bits_of(sum(infinity, -infinity)), kNan);
  EXPECT_EQ(bits_of(sum(payload, 1.0)), kNan);
  EXPECT_EQ(bits_of(sum(1.0, signalling)), kNan);
  EXPECT_EQ(bits_of(min(1.0, signalling)), kNan);
  EXPECT_EQ(bits_of(max(payload, infinity)), kNan);
  EXPECT_EQ(bits_of(min(std::numeric_limits<float>::quiet_NaN(), 1.0f)), 0xFFC0'0000u);
  EXPECT_EQ(bits_of(min(0.0, -0.0)), bits_of(-0.0));
  EXPECT_EQ(bits_of(min(-0.0, 0.0)), bits_of(-0.0));
  EXPECT_EQ(bits_of(max(-0.0, 0.0)), bits_of(0.0));
  EXPECT_EQ(bits_of(sum(-0.0, -0.0)), bits_of(-0.0));
  EXPECT_EQ(bits_of(sum(-0.0, 0.0)), bits_of(0.0));
}

}  // namespace
}  // namespace cepheus::arithmetic
