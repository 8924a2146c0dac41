// A program's floating-point environment does not change results, and stays as it was.
#include "arithmetic/floating_point.h"

#include <gtest/gtest.h>

#include <cstring>

#include "arithmetic/combine.h"
#include "arithmetic/test_values.h"

namespace cepheus::arithmetic {
namespace {

template <typename T>
T result_of(Operation operation, T a, T b) {
  Batch(*Combiner::find(operation, type_of<T>()))
      .combine(reinterpret_cast<std::uint8_t*>(&a), reinterpret_cast<const std::uint8_t*>(&b),
               sizeof(T));
  return a;
}

// All pairs of special values, in the environment that the caller has. The values are made before.
template <typename T>
std::vector<Bits<T>> all_results() {
  static const std::vector<T> values = special_values<T>();
  std::vector<Bits<T>> results;
  for (const Operation operation : operations_on<T>()) {
    for (const T a : values) {
      for (const T b : values) results.push_back(bits_of(result_of(operation, a, b)));
    }
  }
  return results;
}

template <typename T>
class Rounding : public testing::Test {
 protected:
  ~Rounding() override { std::fesetenv(FE_DFL_ENV); }
};
using FloatingTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(Rounding, FloatingTypes);

TYPED_TEST(Rounding, OfAProgramChangesNothing) {
  const auto expected = all_results<TypeParam>();
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    ASSERT_EQ(std::fesetround(rounding), 0);
    EXPECT_EQ(all_results<TypeParam>(), expected);
    EXPECT_EQ(std::fegetround(), rounding);
  }
}

template <typename Each>
class EnvironmentTest : public testing::Test {
 protected:
  ~EnvironmentTest() override { std::fesetenv(FE_DFL_ENV); }
};
#if defined(__SSE2__)
using Environments = testing::Types<StandardEnvironment, SseEnvironment>;
#else
using Environments = testing::Types<StandardEnvironment>;
#endif
TYPED_TEST_SUITE(EnvironmentTest, Environments);

TYPED_TEST(EnvironmentTest, RoundsToTheNearestAndRestores) {
  volatile double one = 1, tiny = 1e-30;
  std::fesetround(FE_UPWARD);
  std::feclearexcept(FE_ALL_EXCEPT);
  {
    const TypeParam environment;
    EXPECT_EQ(one + tiny, 1);
  }
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0) << "the program sees no exception of ours";
  EXPECT_GT(one + tiny, 1);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
}

#if defined(__SSE2__)
constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040, kDefault = 0x1F80,
                   kAllExceptions = 0x3F, kDivideByZeroMask = 0x0200;

TYPED_TEST(EnvironmentTest, KeepsSubnormalNumbersAndRestoresAllBits) {
  volatile double least = std::numeric_limits<double>::min();
  for (const unsigned bits : {kDefault | kFlushToZero, kDefault | kDenormalsAreZero,
                              kDefault | kFlushToZero | kDenormalsAreZero | kAllExceptions,
                              (kDefault & ~kDivideByZeroMask) | kFlushToZero}) {
    _mm_setcsr(bits);
    {
      const TypeParam environment;
      EXPECT_EQ(_mm_getcsr() & ~kAllExceptions, kDefault);
      EXPECT_GT(least / 2, 0);
    }
    EXPECT_EQ(_mm_getcsr(), bits);
  }
  _mm_setcsr(kDefault);
}

TYPED_TEST(Rounding, FlushedSubnormalNumbersOfAProgramChangeNothing) {
  const auto expected = all_results<TypeParam>();
  _mm_setcsr(kDefault | kFlushToZero | kDenormalsAreZero);
  EXPECT_EQ(all_results<TypeParam>(), expected);
  EXPECT_EQ(_mm_getcsr(), kDefault | kFlushToZero | kDenormalsAreZero);
  _mm_setcsr(kDefault);
}

TEST(BatchTest, OfIntegersLeavesTheEnvironmentAlone) {
  _mm_setcsr(kDefault | kFlushToZero);
  {
    const Batch integers(*Combiner::find(Operation::kSum, Type::kInt32));
    EXPECT_EQ(_mm_getcsr(), kDefault | kFlushToZero);
    const Batch doubles(*Combiner::find(Operation::kSum, Type::kDouble));
    EXPECT_EQ(_mm_getcsr(), kDefault);
  }
  EXPECT_EQ(_mm_getcsr(), kDefault | kFlushToZero);
  _mm_setcsr(kDefault);
}
#endif

}  // namespace
}  // namespace cepheus::arithmetic
