#include "switch-emulator/tools/web_request.h"

#include <gtest/gtest.h>

namespace cepheus::tools {
namespace {

using httplib::Request;
using nlohmann::json;

const std::string kToken(32, 'a');

WebRequests open_to_this_machine() { return {{"127.0.0.1", 8080}, false, ""}; }
WebRequests with_control() { return {{"127.0.0.1", 8080}, true, kToken}; }

Request called_by(const std::string& host) {
  Request request;
  request.headers.emplace("Host", host);
  return request;
}

Request post(const std::string& body, const std::string& token = kToken) {
  Request request;
  request.headers.emplace("Content-Type", "application/json");
  request.params.emplace("token", token);
  request.body = body;
  return request;
}

int status(const std::optional<HttpRefusal>& refusal) { return refusal ? refusal->status : 200; }
int status(const Answerable<json>& request) { return request ? 200 : request.error().status; }

TEST(WebRequests, AreAcceptedFromPagesOfThisMachineOnly) {
  for (const char* own : {"127.0.0.1:8080", "127.0.0.1", "localhost:1", "[::1]:8080", "[::1]"}) {
    EXPECT_EQ(status(open_to_this_machine().refuse(called_by(own))), 200) << own;
  }
  for (const char* other : {"rebound.example", "rebound.example:8080", "", ":8080", "[::2]"}) {
    EXPECT_EQ(status(open_to_this_machine().refuse(called_by(other))), 403) << other;
  }
  EXPECT_EQ(status(with_control().refuse(called_by("node7"))), 200) << "the token decides";
}

TEST(WebRequests, NeedTheWholeToken) {
  for (const std::string& wrong : {std::string(), kToken.substr(1), kToken + "a", "b" + kToken}) {
    EXPECT_EQ(status(with_control().refuse_reading(post("{}", wrong))), 403) << wrong;
    EXPECT_EQ(status(with_control().link_request(post("{}", wrong))), 403) << wrong;
  }
  EXPECT_EQ(status(with_control().refuse_reading(post("{}"))), 200);
}

TEST(WebRequests, ChangeNothingWithoutControl) {
  EXPECT_EQ(status(open_to_this_machine().link_request(post("{}"))), 403);
  EXPECT_EQ(status(open_to_this_machine().kill_request(post("{}"))), 403);
}

TEST(WebRequests, SendTheFabricNothingElse) {
  const auto link = with_control().link_request(
      post(R"({"ask": "stop", "link": "h0", "up": false, "direction": "up", "loss": 0.5})"));
  ASSERT_TRUE(link);
  EXPECT_EQ(
      *link,
      (json{{"ask", "link"}, {"direction", "both"}, {"link", "h0"}, {"up", false}, {"loss", 0.5}}));
  const auto kill = with_control().kill_request(post(R"({"ask": "stop", "host": "h0", "pid": 7})"));
  ASSERT_TRUE(kill);
  EXPECT_EQ(*kill, (json{{"ask", "kill"}, {"host", "h0"}, {"pid", 7}}));
}

TEST(WebRequests, AreOneJsonObjectOfFewBytes) {
  for (const std::string& body :
       {std::string("[1]"), std::string("{"), std::string("{\"link\": \"\xFF\"}"), std::string(),
        "{\"link\": \"" + std::string(WebRequests::kMostBody, 'x') + "\"}"}) {
    EXPECT_EQ(status(with_control().link_request(post(body))), 400) << body.substr(0, 20);
  }
  Request form = post("{}");
  form.headers.clear();
  form.headers.emplace("Content-Type", "text/plain");
  EXPECT_EQ(status(with_control().link_request(form)), 400) << "another page can send it";
  EXPECT_EQ(status(with_control().kill_request(post(R"({"host": "h0", "pid": "7"})"))), 400);
}

}  // namespace
}  // namespace cepheus::tools
