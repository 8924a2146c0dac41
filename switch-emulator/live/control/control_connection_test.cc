#include "switch-emulator/live/control/control_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

namespace cepheus::live {
namespace {

using fabric::UniqueFd;
using wire::Instant;

class ControlConnectionTest : public testing::Test {
 protected:
  ControlConnectionTest() : connection(make_pair(), 1000, now) {}

  UniqueFd make_pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    peer.reset(ends[1]);
    return UniqueFd(ends[0]);
  }
  void send_text(const std::string& text) {
    ASSERT_EQ(send(peer.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  // More than a socket accepts at once.
  static ControlConnection::Answer long_answer() {
    return std::make_shared<const std::string>(std::size_t{4} << 20, 'x');
  }

  Instant now{std::chrono::hours(1)};
  UniqueFd peer;
  ControlConnection connection;
};

TEST_F(ControlConnectionTest, ReadsLineByLine) {
  send_text("one\ntwo\nthr");
  ASSERT_TRUE(connection.read(now));
  EXPECT_EQ(connection.request(), "one\n");
  connection.drop_request();
  EXPECT_EQ(connection.request(), "two\n");
  connection.drop_request();
  EXPECT_EQ(connection.request(), "");
  send_text("ee\n");
  ASSERT_TRUE(connection.read(now));
  EXPECT_EQ(connection.request(), "three\n");
}

TEST_F(ControlConnectionTest, DisconnectsAfterALineWithoutEnd) {
  const std::string part(ControlConnection::kMaxRequests / 2 + 1, 'x');
  send_text(part);
  EXPECT_TRUE(connection.read(now));
  send_text(part);
  EXPECT_FALSE(connection.read(now));
}

TEST_F(ControlConnectionTest, KeepsOneTextForManyAnswers) {
  const auto text = long_answer();
  for (int n = 0; n < 1000; ++n) connection.answer(text);
  EXPECT_EQ(text.use_count(), 1001);
  EXPECT_EQ(connection.newest_unsent(), text);
}

TEST_F(ControlConnectionTest, DisconnectsAPeerThatDoesNotRead) {
  connection.answer(long_answer());
  EXPECT_EQ(connection.deadline(), now + ControlConnection::kTimeLimit);
  now += std::chrono::seconds(1);
  ASSERT_TRUE(connection.write(now));
  EXPECT_EQ(connection.deadline(), now + ControlConnection::kTimeLimit);
  ASSERT_TRUE(connection.write(now + std::chrono::seconds(1)));  // the socket is full
  EXPECT_EQ(connection.deadline(), now + ControlConnection::kTimeLimit);
}

TEST_F(ControlConnectionTest, WaitsForRequestsForEver) {
  send_text("half a req");
  ASSERT_TRUE(connection.read(now));
  EXPECT_EQ(connection.deadline(), wire::kNever);
}

TEST_F(ControlConnectionTest, AnswersAPeerThatHasClosedItsSendingEnd) {
  send_text("one\n");
  shutdown(peer.get(), SHUT_WR);
  ASSERT_TRUE(connection.read(now));
  ASSERT_TRUE(connection.read(now));
  EXPECT_FALSE(connection.is_done());
  connection.drop_request();
  connection.answer(std::make_shared<const std::string>("yes\n"));
  EXPECT_FALSE(connection.is_done());
  ASSERT_TRUE(connection.write(now));
  EXPECT_TRUE(connection.is_done());
  std::array<char, 8> answer{};
  EXPECT_EQ(recv(peer.get(), answer.data(), answer.size(), 0), 4);
}

}  // namespace
}  // namespace cepheus::live
