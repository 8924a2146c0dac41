#include "wire/situation.h"

#include <gmock/gmock.h>

#include <string_view>

namespace cepheus::wire {
namespace {

void meets(bool first, bool second) {
  if (first) CEPHEUS_SITUATION("the first of a test");
  if (second) CEPHEUS_RARE_SITUATION("the second of a test");
}

const Situation* find(std::string_view name) {
  for (const Situation* each : situations()) {
    if (each->name == name) return each;
  }
  return nullptr;
}

TEST(Situations, AreListedBeforeTheyAreMet) {
  if (situations().empty()) GTEST_SKIP() << "built without assertions: ./run build has them";
  const Situation* const rare = find("the second of a test");
  ASSERT_NE(rare, nullptr);
  EXPECT_TRUE(rare->is_rare);
  EXPECT_THAT(rare->file, testing::EndsWith("wire/situation_test.cc"));
  EXPECT_FALSE(find("the first of a test")->is_rare);
}

TEST(Situations, AreCountedWhereTheyArise) {
  if (situations().empty()) GTEST_SKIP() << "built without assertions: ./run build has them";
  const Situation* const first = find("the first of a test");
  const Situation* const second = find("the second of a test");
  const std::uint32_t first_before = first->met, second_before = second->met;
  meets(true, false);
  meets(true, false);
  EXPECT_EQ(first->met, first_before + 2);
  EXPECT_EQ(second->met, second_before);
}

}  // namespace
}  // namespace cepheus::wire
