
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "switch-emulator/engine/counters.h"
#include "switch-emulator/live/status/readings.h"

namespace cepheus::live {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CounterDescriptions, ExistForEachCounter) {
  const std::string text = describe_counters(false);
  const nlohmann::json all = counter_descriptions();
  EXPECT_EQ(all.size(), all_readings().size());
  for (const auto& [name, help] : all.items()) {
    EXPECT_THAT(text, HasSubstr("  " + name + " "));
    EXPECT_GT(help.get<std::string>().size(), 5u) << name;
  }
  EXPECT_EQ(all["drop_ttl"], "time to live used up: a routing loop");
}

TEST(CounterDescriptions, BelongToTheCounterOfTheName) {
  EXPECT_EQ(name(fabric::Counter::kDropOther), "drop_other");
  EXPECT_EQ(std::size(fabric::kCounterTexts), static_cast<std::size_t>(fabric::Counter::kCount));
}

TEST(CounterDescriptions, AreColouredForATerminalOnly) {
  EXPECT_THAT(describe_counters(false), Not(HasSubstr("\033")));
  EXPECT_THAT(describe_counters(true), HasSubstr("\033["));
}

}  // namespace
}  // namespace cepheus::live
