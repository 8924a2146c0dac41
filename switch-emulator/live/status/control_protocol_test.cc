#include "switch-emulator/live/status/control_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/test_answering_fabric.h"

namespace cepheus::live {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using wire::ErrorCode;

TEST(ControlProtocol, SendsOneLineAndReadsTheAnswer) {
  AnsweringFabric fabric(json{{"ok", true}, {"status", {{"pid", 5}}}});
  const auto answer = send_request(fabric.socket(), {{"ask", "status"}});
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ((*answer)["status"]["pid"], 5);
  EXPECT_EQ(fabric.last_request(), json({{"ask", "status"}}));
}

TEST(ControlProtocol, ReadsAnswersOfAnySize) {
  const json large = {{"ok", true}, {"text", std::string(3 << 20, 'x')}};
  const AnsweringFabric fabric(large);
  const auto answer = send_request(fabric.socket(), {{"ask", "status"}});
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(*answer, large);
}

TEST(ControlProtocol, PassesARefusalOn) {
  const AnsweringFabric fabric(json{{"ok", false}, {"error", "there is no host h9"}});
  const auto answer = send_request(fabric.socket(), {{"ask", "link"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kRefused);
  EXPECT_EQ(answer.error().text, "there is no host h9");
}

TEST(ControlProtocol, ReportsAMissingFabric) {
  const auto answer = send_request("/nonexistent/fabric", {{"ask", "status"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(answer.error().text, HasSubstr("no fabric at /nonexistent/fabric.ctl"));
  EXPECT_THAT(answer.error().text, HasSubstr("start cepheus-switch"));
}

TEST(ControlProtocol, GivesUpOnAFabricThatDoesNotAnswer) {
  const AnsweringFabric silent(nullptr);
  const auto answer = send_request(silent.socket(), {{"ask", "status"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kTimedOut);
  EXPECT_THAT(answer.error().text, HasSubstr("did not answer within 5 s"));
}

TEST(ControlProtocol, RefusesInvalidAnswers) {
  for (const char* text : {"hello\n", "[]\n", "{\"ok\": 1}\n", "{}\n"}) {
    AnsweringFabric fabric(json::object());
    fabric.answer_with(text);
    const auto answer = send_request(fabric.socket(), {{"ask", "status"}});
    ASSERT_FALSE(answer) << text;
    EXPECT_THAT(answer.error().text, HasSubstr("not a fabric of this version")) << text;
  }
}

TEST(ControlProtocol, ReportsAFabricThatClosesInTheMiddle) {
  AnsweringFabric fabric(json::object());
  fabric.answer_with("{\"ok\": tr");
  const auto answer = send_request(fabric.socket(), {{"ask", "stop"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(answer.error().text, HasSubstr("closed the connection"));
}

TEST(ControlProtocol, RefusesAPathThatNoSocketCanHave) {
  const auto answer = send_request("/tmp/" + std::string(200, 'x'), {{"ask", "status"}});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().text, HasSubstr("is longer than 107 bytes"));
}

}  // namespace
}  // namespace cepheus::live
