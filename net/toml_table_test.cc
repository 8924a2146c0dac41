#include "net/toml_table.h"

#include <gtest/gtest.h>

namespace cepheus::net {
namespace {

std::string error_of(const std::string& text) {
  TomlErrors errors("net.toml");
  const bool is_read = parse_toml(text, errors).has_value();
  EXPECT_NE(is_read, errors.first().has_value());
  return errors.first().value_or("");
}

// Each led toml++ into undefined behaviour, or is next to one that did.
TEST(TomlTable, RefusesBytesThatAreNoText) {
  const std::string control = "a control character; delete it";
  EXPECT_EQ(error_of("[fabric]\n# \x1b[2J\n"), "net.toml:2: " + control);
  EXPECT_EQ(error_of(std::string("\n\nname = \"\0\"", 12)), "net.toml:3: " + control);
  EXPECT_EQ(error_of("# \x7f"), "net.toml:1: " + control);
  EXPECT_EQ(error_of("\n# caf\xE9\n"),
            "net.toml:2: a byte that is not UTF-8; save the file as text in UTF-8");
}

TEST(TomlTable, TakesOtherLettersThanAsciiInQuotesAndCommentsOnly) {
  const std::string cafe = "caf\xC3\xA9";
  EXPECT_EQ(error_of("# " + cafe + " \"\r\n\tname = \"" + cafe + "\"  # " + cafe), "");
  EXPECT_EQ(error_of("\xEF\xBB\xBFname = 1"), "") << "a byte order mark";
  EXPECT_EQ(error_of("name = '\\' # " + cafe), "") << "no escapes between single quotes";
  const std::string refused = "a character outside quotes and comments is not ASCII; delete it";
  for (const std::string& text :
       {std::string("\xC8\xAD\0\0\0\0", 6), "\xC3\x80" + std::string("0'J"), "name = " + cafe,
        "name = \"\\\"\" " + cafe, "name = \"#\" " + cafe, "name = '\\' " + cafe}) {
    EXPECT_EQ(error_of(text), "net.toml:1: " + refused) << text;
  }
  EXPECT_EQ(error_of("name = \"\n" + cafe), "net.toml:2: " + refused);
}

TEST(TomlTable, TakesTextOfOneLineOnly) {
  for (const char* text : {"name = \"\"\"\na\"\"\"", "name = '''a'''"}) {
    EXPECT_EQ(error_of(text),
              "net.toml:1: three quotes; write text in one line, in one pair of quotes");
  }
  EXPECT_EQ(error_of("name = \"\""), "");
}

}  // namespace
}  // namespace cepheus::net
