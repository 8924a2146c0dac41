#include "fabric-sim/experiments/message_sizes.h"

#include <gmock/gmock.h>

namespace cepheus::sim {
namespace {

std::string refusal(const char* text) {
  const auto sizes = MessageSizes::parse(text, "cdf");
  return sizes ? "" : sizes.error().text;
}

TEST(MessageSizes, HaveThePublishedMeans) {
  EXPECT_NEAR(MessageSizes::alibaba_storage().mean(), 40.9e3, 0.02 * 40.9e3);
  EXPECT_NEAR(MessageSizes::web_search().mean(), 1.71e6, 0.02 * 1.71e6);
}

TEST(MessageSizes, AreDrawnAsTheyAreSpread) {
  const auto sizes = MessageSizes::parse("100 0\n200 50  # half\n\n1000 100\n", "cdf");
  ASSERT_TRUE(sizes) << sizes.error().text;
  EXPECT_EQ(sizes->largest(), 1000u);
  EXPECT_DOUBLE_EQ(sizes->mean(), 0.5 * 150 + 0.5 * 600);
  Random random(1);
  double sum = 0;
  int small = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint32_t bytes = sizes->draw(random);
    ASSERT_GE(bytes, 100u);
    ASSERT_LE(bytes, 1000u);
    small += bytes <= 200;
    sum += bytes;
  }
  EXPECT_NEAR(sum / kDraws, sizes->mean(), 0.01 * sizes->mean());
  EXPECT_NEAR(small, kDraws / 2, kDraws / 100);
}

TEST(MessageSizes, BelowTheFirstPointHaveItsSize) {
  const auto sizes = MessageSizes::parse("4096 100\n", "cdf");
  ASSERT_TRUE(sizes) << sizes.error().text;
  Random random(1);
  EXPECT_EQ(sizes->draw(random), 4096u);
}

TEST(MessageSizes, ThatAreInvalidAreRefusedWithTheirLine) {
  const std::pair<const char*, const char*> wrong[] = {
      {"100 0\nmany 50\n", "cdf, line 2: "}, {"100 0 7\n", "cdf, line 1: "},
      {"0 50\n1 100\n", "cdf, line 1: "},    {"100 101\n", "cdf, line 1: "},
      {"100 50\n90 100\n", "cdf, line 2: "}, {"100 50\n200 50\n300 100\n", "cdf, line 2: "},
      {"100 50\n", "cdf, line 1: "},         {"", "cdf, line 0: "}};
  for (const auto& [text, place] : wrong) {
    EXPECT_THAT(refusal(text), testing::StartsWith(place)) << text;
  }
  const auto file = MessageSizes::from_file("/there/is/none");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().text, testing::StartsWith("/there/is/none "));
}

}  // namespace
}  // namespace cepheus::sim
