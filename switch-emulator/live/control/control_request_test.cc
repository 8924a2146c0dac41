#include "switch-emulator/live/control/control_request.h"

#include <gmock/gmock.h>

namespace cepheus::live {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view line) {
  const auto request = parse_control_request(line);
  return request ? "" : request.error().text;
}

TEST(ControlRequest, AcceptsValidLinkSettings) {
  const auto request = parse_control_request(
      R"({"ask": "link", "link": "h1", "direction": "up", "loss": 0.5, "up": false})");
  ASSERT_TRUE(request) << request.error().text;
  const auto& link = std::get<LinkRequest>(*request);
  EXPECT_EQ(link.link, "h1");
  EXPECT_EQ(link.direction, "up");
  EXPECT_EQ(link.loss, 0.5);
  EXPECT_EQ(link.up, false);
}

TEST(ControlRequest, RefusesUnknownKindsAndValues) {
  EXPECT_THAT(error_of(R"({"ask": "weather"})"), HasSubstr("status, record, link, kill, reload"));
  for (const char* line : {"[]", R"({"ask": 7})"})
    EXPECT_THAT(error_of(line), HasSubstr("needs a kind"));
  EXPECT_THAT(error_of(R"({"ask": "link", "link": "h0", "loss": 2})"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(error_of(R"({"ask": "link", "link": "h0", "up": 1})"), HasSubstr("true or false"));
}

TEST(ControlRequest, RefusesLinkSettingsThatOnlyATopologyHas) {
  for (const std::string key : {"duplicate", "reorder", "corrupt", "los"}) {
    const std::string error =
        error_of(R"({"ask": "link", "link": "h1", "up": true, ")" + key + R"(": 0.5})");
    EXPECT_THAT(error, HasSubstr("link has no setting '" + key + "'"));
    EXPECT_THAT(error, HasSubstr("topology"));
  }
}

// The search for a similar name would take seconds.
TEST(ControlRequest, RefusesALinkWithALongerNameThanAnyTrunk) {
  const auto link = [](std::size_t length) {
    return error_of(R"({"ask": "link", "up": true, "link": ")" + std::string(length, 'a') + "\"}");
  };
  EXPECT_EQ(link(63 + 1 + 63 + std::string("#65535").size()), "");
  EXPECT_THAT(link(134), HasSubstr("at most 133 characters"));
  EXPECT_THAT(link(60'000), HasSubstr("at most 133 characters"));
}

TEST(ControlRequest, BoundsTheRateOfARecording) {
  const auto rate_of = [](const std::string& rate) {
    const auto request = parse_control_request(
        R"({"ask": "record", "recorder": 17, "packets_per_second": )" + rate + "}");
    return std::get<RecordRequest>(*request).packets_per_second;
  };
  EXPECT_EQ(rate_of("1"), 100u);
  EXPECT_EQ(rate_of("5000"), 5000u);
  EXPECT_EQ(rate_of("18446744073709551615"), 1'000'000u);
  EXPECT_EQ(rate_of("\"many\""), 20'000u);
}

// Truncated to 32 bits, the second number equals the first.
TEST(ControlRequest, KillsNoOtherProcessThanTheOneNamed) {
  const auto kill = [](const std::string& pid) {
    return parse_control_request(R"({"ask": "kill", "host": "h1", "pid": )" + pid + "}");
  };
  ASSERT_TRUE(kill("17"));
  EXPECT_EQ(std::get<KillRequest>(*kill("17")).pid, 17);
  for (const char* pid : {"4294967313", "0", "-17", "17.0", "\"17\"", "null"}) {
    EXPECT_FALSE(kill(pid)) << pid;
  }
}

TEST(ControlRequest, RefusesValuesNestedAsDeeplyAsALineHolds) {
  constexpr std::size_t kDepth = 30'000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  EXPECT_THAT(error_of(R"({"ask": "link", "link": )" + deep + "}"), HasSubstr("must name a host"));
  EXPECT_THAT(error_of(R"({"ask": "kill", "pid": )" + deep + "}"), HasSubstr("kill needs"));
  EXPECT_THAT(error_of(R"({"ask": )" + deep + "}"), HasSubstr("needs a kind"));
}

}  // namespace
}  // namespace cepheus::live
