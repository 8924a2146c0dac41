#include "wire/printable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cepheus::wire {
namespace {

TEST(Printable, KeepsOrdinaryText) {
  for (const char* text : {"", "MPI_COMM_WORLD", "a b", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, EscapesTerminalControls) {
  EXPECT_EQ(printable("a\x1b[2J\r\nb\t\x7f"), "a\\x1b[2J\\x0d\\x0ab\\x09\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "\\x9b2J")
      << "CSI in one character";
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "txt"),
            "\\u202etxt")
      << "from right to left";
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
}

TEST(Printable, EscapesFromTheFirstToTheLastOfEachRange) {
  EXPECT_EQ(printable("\xC2\xA0\xC4\x80\xE2\x80\xA7"), "\xC2\xA0\xC4\x80\xE2\x80\xA7");
  EXPECT_EQ(printable("\xC2\x80\xC2\x9F"), "\\x80\\x9f");
  EXPECT_EQ(printable("\xD8\x9C\xE2\x80\x8D\xE2\x80\x8E\xE2\x80\x8F\xE2\x80\x90"),
            "\\u061c\xE2\x80\x8D\\u200e\\u200f\xE2\x80\x90");
  EXPECT_EQ(printable("\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA\xE2\x80\xAE\xE2\x80\xAF"),
            "\\u2028\\u2029\\u202a\\u202e\xE2\x80\xAF");
  EXPECT_EQ(printable("\xE2\x81\xA5\xE2\x81\xA6\xE2\x81\xA9\xE2\x81\xAA"),
            "\xE2\x81\xA5\\u2066\\u2069\xE2\x81\xAA");
}

TEST(Printable, ReplacesWhatIsNoUtf8) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(printable("a\xC3"), "a" + r) << "cut off";
  EXPECT_EQ(printable("\xE2\x82"
                      "b"),
            r + r + "b");
  EXPECT_EQ(printable("\x9B"
                      "2J"),
            r + "2J");
  EXPECT_EQ(printable("\xC0\x9B"), r + r) << "longer than need be";
  EXPECT_EQ(printable("\xED\xA0\x80"), r + r + r) << "half a surrogate pair";
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), r + r + r + r) << "beyond U+10FFFF";
  EXPECT_EQ(printable("\xFF"), r);
}

TEST(Printable, AnyBytesBecomeTextWithoutTerminalControls) {
  std::mt19937 random(20);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 12, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const std::string shown = printable(bytes);
    EXPECT_TRUE(std::none_of(shown.begin(), shown.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    }));
    EXPECT_EQ(printable(shown), shown) << "twice does no more";
  }
}

}  // namespace
}  // namespace cepheus::wire
