#include "libmcast/sized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cepheus::mcast {
namespace {

using ::testing::HasSubstr;

// A structure that had two fields at first, and got a third.
struct Sample {
  std::size_t struct_size;
  int first;
  int second;
};

}  // namespace

template <>
inline constexpr std::size_t kFirstSize<Sample> = offsetof(Sample, second);

namespace {

// The structure of a caller that was built with a newer header.
struct NewerSample {
  Sample known;
  std::uint64_t unknown;
};

constexpr Sample kDefaults{sizeof(Sample), 1, 2};

TEST(SizedInput, OfAnOlderCallerKeepsDefaultsForWhatItLacks) {
  const Sample given{offsetof(Sample, second), 10, 20};
  const auto read = read_sized(&given, kDefaults);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->first, 10);
  EXPECT_EQ(read->second, 2);
}

TEST(SizedInput, OfANewerCallerIsRefusedOnlyIfTheUnknownIsUsed) {
  NewerSample given{{sizeof(NewerSample), 10, 20}, 0};
  const auto read = read_sized(&given.known, kDefaults);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->second, 20);
  given.unknown = 1;
  const auto refused = read_sized(&given.known, kDefaults);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("lacks: update it"));
}

TEST(SizedInput, MayBeAbsent) {
  const auto read = read_sized<Sample>(nullptr, kDefaults);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->first, 1);
}

TEST(SizedOutput, OfAnOlderCallerIsNotWrittenBeyondItsSize) {
  Sample out{offsetof(Sample, second), -1, -1};
  write_sized({sizeof(Sample), 10, 20}, out);
  EXPECT_EQ(out.first, 10);
  EXPECT_EQ(out.second, -1) << "memory that the older caller uses for something else";
  EXPECT_EQ(out.struct_size, offsetof(Sample, second));
}

TEST(SizedOutput, OfANewerCallerIsFilledAsFarAsTheLibraryKnows) {
  NewerSample out{{sizeof(NewerSample), -1, -1}, 7};
  write_sized({sizeof(Sample), 10, 20}, out.known);
  EXPECT_EQ(out.known.second, 20);
  EXPECT_EQ(out.unknown, 7u);
  EXPECT_EQ(out.known.struct_size, sizeof(NewerSample));
}

TEST(SizedStructure, IsRefusedBelowTheFirstVersionAndBeyondAllOfThem) {
  for (const std::size_t size : {std::size_t{0}, offsetof(Sample, second) - 1, kLargestSize + 1}) {
    const auto checked = check_size(Sample{size, 0, 0});
    ASSERT_FALSE(checked) << size;
    EXPECT_EQ(checked.error().status, MCAST_ERR_INVALID);
    EXPECT_THAT(checked.error().text, HasSubstr("struct_size is " + std::to_string(size)));
    EXPECT_THAT(checked.error().text, HasSubstr("_INIT macro"));
  }
  EXPECT_TRUE(check_size(Sample{offsetof(Sample, second), 0, 0}));
}

}  // namespace
}  // namespace cepheus::mcast
