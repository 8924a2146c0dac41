#include "collectives/core/records.h"

#include <gmock/gmock.h>

namespace cepheus::coll {
namespace {

using testing::HasSubstr;

std::string parameter(const char* name) { return std::string("p_") + name; }
std::string text(const std::vector<RankRecord>& ranks) {
  return difference_between(ranks, Mode::kTry, parameter);
}
std::string usual() { return record_of("1.0", {}); }

TEST(Records, OfEqualRanksDoNotDiffer) { EXPECT_EQ(text({{usual(), "a"}, {usual(), "b"}}), ""); }

TEST(Records, NameTheHostsWithoutCepheus) {
  const std::vector<RankRecord> ranks{{"", "a"}, {usual(), "b"}, {"", "c"}, {"", "a"}};
  EXPECT_THAT(text(ranks), HasSubstr("on a, c have not loaded"));
  EXPECT_EQ(reporting_rank(ranks, Mode::kTry), 1u);
}

TEST(Records, NameTheHostsOfEachVersion) {
  EXPECT_THAT(text({{usual(), "a"}, {record_of("2.0", {}), "b"}}),
              HasSubstr("1.0 on a, and 2.0 on b"));
}

TEST(Records, NameTheSettingThatDiffers) {
  Parameters other;
  other.safeguard_samples = 7;
  EXPECT_THAT(text({{usual(), "a"}, {record_of("1.0", other), "b"}}),
              HasSubstr("p_safeguard_samples is 10 on a, and 7 on b"));
  EXPECT_THAT(text({{"1.0 0", "a"}, {usual(), "b"}}),
              HasSubstr("p_mode is try on b, and off on a"));
}

TEST(Records, OfManyHostsNameSome) {
  std::vector<RankRecord> ranks{{usual(), "a"}};
  for (int i = 0; i < 9; ++i) ranks.push_back({"", "n" + std::to_string(i)});
  EXPECT_THAT(text(ranks), HasSubstr("n0, n1, n2, n3 and 5 more"));
}

// Each prints what it does: the job goes on in one, and ends in the other.
TEST(Records, HaveAReporterForEachMode) {
  Parameters require;
  require.mode = static_cast<int>(Mode::kRequire);
  const std::vector<RankRecord> ranks{
      {"1.0 0", "a"}, {usual(), "b"}, {record_of("1.0", require), "c"}};
  EXPECT_EQ(reporting_rank(ranks, Mode::kTry), 1u);
  EXPECT_EQ(reporting_rank(ranks, Mode::kRequire), 2u);
}

// Open MPI's own algorithms serve a communicator of fewer members without a comparison.
TEST(Records, HaveAReporterThatServesTheCommunicator) {
  Parameters other;
  other.min_members = 3;
  const std::vector<RankRecord> ranks{{record_of("1.0", other), "a"}, {usual(), "b"}};
  EXPECT_EQ(reporting_rank(ranks, Mode::kTry), 1u);
  EXPECT_THAT(text(ranks), HasSubstr("p_min_members is 2 on b, and 3 on a"));
}

}  // namespace
}  // namespace cepheus::coll
