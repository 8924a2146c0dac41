#include "switch-emulator/live/status/text_table.h"

#include <gtest/gtest.h>

namespace cepheus::live {
namespace {

TEST(TextTable, AlignsTextToTheLeftAndNumbersToTheRight) {
  TextTable table({{"NAME"}, {"N", true}, {"LAST"}});
  table.add({"a", std::uint64_t{1}, "x"});
  table.add({"longer", std::uint64_t{1000}, "yy"});
  EXPECT_EQ(table.to_text(false),
            "  NAME       N  LAST\n"
            "  a          1  x\n"
            "  longer  1000  yy\n");
}

TEST(TextTable, CountsABranchOfATreeAsOneColumnEach) {
  TextTable table({{"TREE"}, {"N", true}});
  table.add({"├─ h0", std::uint64_t{1}});
  table.add({"abcdef", std::uint64_t{2}});
  EXPECT_EQ(table.to_text(false),
            "  TREE    N\n"
            "  ├─ h0   1\n"
            "  abcdef  2\n");
}

TEST(TextTable, ColoursOnlyOnRequest) {
  TextTable table({{"N", true}});
  table.add({{std::uint64_t{3}, Style::kAlarm}});
  EXPECT_EQ(table.to_text(false), "  N\n  3\n");
  EXPECT_EQ(table.to_text(true), "  \033[1mN\033[0m\n  \033[31m3\033[0m\n");
}

}  // namespace
}  // namespace cepheus::live
