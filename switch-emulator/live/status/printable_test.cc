#include "switch-emulator/live/status/printable.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace cepheus::live {
namespace {

TEST(FirstFew, NamesFourAndCountsTheRest) {
  EXPECT_EQ(first_few({}), "");
  EXPECT_EQ(first_few({"a", "b", "c", "d"}), "a, b, c, d");
  EXPECT_EQ(first_few({"a", "b", "c", "d", "e", "f"}, "; "), "a; b; c; d and 2 more");
}

TEST(JsonText, AcceptsAnyPrintableValue) {
  std::mt19937 random(20);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 12, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_NO_THROW(nlohmann::json(printable(bytes)).dump());
  }
}

TEST(JsonText, IsAsciiAndNeverFails) {
  const nlohmann::json document = {{"name", "a\x1b\xC2\x9B\x7f\xC3"}};
  const std::string text = json_text(document);
  EXPECT_EQ(text, "{\"name\":\"a\\u001b\\u009b\\u007f\\ufffd\"}");
  EXPECT_EQ(json_text({{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

}  // namespace
}  // namespace cepheus::live
