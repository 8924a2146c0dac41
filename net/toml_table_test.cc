#include "net/toml_table.h"

#include <gmock/gmock.h>

namespace cepheus::net {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(const std::string& text) {
  TomlErrors errors("net.toml");
  const bool is_read = parse_toml(text, errors).has_value();
  EXPECT_NE(is_read, errors.first().has_value());
  return errors.first().value_or("");
}

// Each of these led toml++ into undefined behaviour, or is next to one that did.
TEST(TomlTable, RefusesBytesThatAreNoText) {
  EXPECT_THAT(error_of("[fabric]\n# \x1b[2J\n"), StartsWith("net.toml:2: a control"));
  EXPECT_THAT(error_of(std::string("\n\nname = \"\0\"", 12)), StartsWith("net.toml:3: a control"));
  EXPECT_THAT(error_of("# \x7f"), StartsWith("net.toml:1: a control"));
  EXPECT_THAT(error_of("\n# caf\xE9\n"), HasSubstr("UTF-8"));
}

TEST(TomlTable, TakesOtherLettersThanAsciiInQuotesAndCommentsOnly) {
  const std::string cafe = "caf\xC3\xA9";
  EXPECT_EQ(error_of("# " + cafe + " \"\r\n\tname = \"" + cafe + "\"  # " + cafe), "");
  EXPECT_EQ(error_of("\xEF\xBB\xBFname = 1"), "") << "a byte order mark";
  EXPECT_EQ(error_of("name = '\\' # " + cafe), "") << "no escapes between single quotes";
  for (const std::string& text :
       {std::string("\xC8\xAD\0\0\0\0", 6), "\xC3\x80" + std::string("0'J"), "name = " + cafe,
        "name = \"\\\"\" " + cafe, "name = \"#\" " + cafe, "name = '\\' " + cafe}) {
    EXPECT_THAT(error_of(text), AllOf(StartsWith("net.toml:1: "), HasSubstr("ASCII"))) << text;
  }
  EXPECT_THAT(error_of("name = \"\n" + cafe), StartsWith("net.toml:2: "));
}

TEST(TomlTable, TakesTextOfOneLineOnly) {
  for (const char* text : {"name = \"\"\"\na\"\"\"", "name = '''a'''"}) {
    EXPECT_THAT(error_of(text), StartsWith("net.toml:1: three quotes"));
  }
  EXPECT_EQ(error_of("name = \"\""), "");
}

}  // namespace
}  // namespace cepheus::net
