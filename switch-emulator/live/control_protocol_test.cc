#include "switch-emulator/live/control_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

namespace cepheus::live {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using wire::ErrorCode;

// A socket at control_path() that accepts one client, reads its line, answers with fixed text, then
// closes.
class Answerer {
 public:
  Answerer() {
    char pattern[] = "/tmp/cepheus-control-XXXXXX";
    directory_ = ::mkdtemp(pattern);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = control_path(fabric());
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 1) != 0) {
      ADD_FAILURE() << "can't listen at " << path << ": " << std::strerror(errno);
    }
  }
  ~Answerer() {
    if (thread_.joinable()) thread_.join();
    ::close(listener_);
    std::filesystem::remove_all(directory_);
  }

  std::string fabric() const { return directory_ + "/fabric"; }
  const std::string& request() {
    thread_.join();
    return request_;
  }

  void answer_with(const std::string& text) {
    thread_ = std::thread([this, text] {
      const int client = ::accept(listener_, nullptr, nullptr);
      char c;
      while (::recv(client, &c, 1, 0) == 1 && c != '\n') request_ += c;
      for (std::size_t sent = 0; sent < text.size();) {
        const ssize_t n = ::send(client, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
      }
      ::close(client);
    });
  }

 private:
  std::string directory_;
  int listener_ = -1;
  std::string request_;
  std::thread thread_;
};

TEST(ControlProtocol, SendsOneLineAndReadsTheAnswer) {
  Answerer fabric;
  fabric.answer_with("{\"ok\": true, \"status\": {\"pid\": 5}}\n");
  const auto answer = ask(fabric.fabric(), {{"ask", "status"}});
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ((*answer)["status"]["pid"], 5);
  EXPECT_EQ(json::parse(fabric.request()), json({{"ask", "status"}}));
}

TEST(ControlProtocol, ReadsAnswersOfAnySize) {
  Answerer fabric;
  const json large = {{"ok", true}, {"text", std::string(3 << 20, 'x')}};
  fabric.answer_with(large.dump() + "\n");
  const auto answer = ask(fabric.fabric(), {{"ask", "status"}});
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(*answer, large);
}

TEST(ControlProtocol, PassesARefusalOn) {
  Answerer fabric;
  fabric.answer_with("{\"ok\": false, \"error\": \"there is no host h9\"}\n");
  const auto answer = ask(fabric.fabric(), {{"ask", "link"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kRefused);
  EXPECT_EQ(answer.error().text, "there is no host h9");
}

TEST(ControlProtocol, ReportsAMissingFabric) {
  const auto answer = ask("/nonexistent/fabric", {{"ask", "status"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(answer.error().text, HasSubstr("no fabric at /nonexistent/fabric.ctl"));
  EXPECT_THAT(answer.error().text, HasSubstr("start cepheus-switch"));
}

TEST(ControlProtocol, GivesUpOnAFabricThatDoesNotAnswer) {
  const Answerer silent;  // the kernel completes connections up to the backlog, without an accept()
  const auto answer = ask(silent.fabric(), {{"ask", "status"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kTimedOut);
  EXPECT_THAT(answer.error().text, HasSubstr("did not answer within 2 s"));
}

TEST(ControlProtocol, RefusesInvalidAnswers) {
  for (const char* text : {"hello\n", "[]\n", "{\"ok\": 1}\n", "{}\n"}) {
    Answerer fabric;
    fabric.answer_with(text);
    const auto answer = ask(fabric.fabric(), {{"ask", "status"}});
    ASSERT_FALSE(answer) << text;
    EXPECT_THAT(answer.error().text, HasSubstr("not a fabric of this version")) << text;
  }
}

TEST(ControlProtocol, ReportsAFabricThatClosesInTheMiddle) {
  Answerer fabric;
  fabric.answer_with("{\"ok\": tr");
  const auto answer = ask(fabric.fabric(), {{"ask", "stop"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(answer.error().text, HasSubstr("closed the connection"));
}

TEST(ControlProtocol, RefusesAPathThatNoSocketCanHave) {
  const auto answer = ask("/tmp/" + std::string(200, 'x'), {{"ask", "status"}});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().text, HasSubstr("is longer than 107 bytes"));
}

}  // namespace
}  // namespace cepheus::live
