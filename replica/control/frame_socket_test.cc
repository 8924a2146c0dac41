#include "replica/control/frame_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

namespace cepheus::replica {
namespace {

struct Pair {
  Pair() {
    std::array<int, 2> fds{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
    raw = wire::UniqueFd(fds[0]);
    socket = std::make_unique<FrameSocket>(wire::UniqueFd(fds[1]), kMostGreeting);
  }
  void put(const std::vector<std::uint8_t>& bytes) {
    ASSERT_EQ(write(raw.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  wire::UniqueFd raw;
  std::unique_ptr<FrameSocket> socket;
};

std::vector<std::uint8_t> refusal(const std::string& text) {
  std::vector<std::uint8_t> out;
  encode_refusal(text, out);
  return out;
}

TEST(FrameSocket, TakesFramesThatComeInPieces) {
  Pair pair;
  std::vector<std::uint8_t> bytes = refusal("one");
  encode_refusal("two", bytes);
  bool ok = true;
  std::vector<std::string> got;
  for (const std::uint8_t byte : bytes) {
    pair.put({byte});
    ASSERT_TRUE(pair.socket->receive());
    while (const auto frame = pair.socket->next(ok)) {
      EXPECT_EQ(frame->type, MessageType::kRefusal);
      got.push_back(decode_text(frame->body).value_or("none"));
    }
    ASSERT_TRUE(ok);
  }
  EXPECT_EQ(got, (std::vector<std::string>{"one", "two"}));
}

TEST(FrameSocket, RefusesInvalidLengths) {
  for (const std::vector<std::uint8_t>& length : {std::vector<std::uint8_t>{0, 0, 0, 0},
                                                  {0, 0, 4, 1},  // kMostGreeting and one
                                                  {0xFF, 0xFF, 0xFF, 0xFF}}) {
    Pair pair;
    pair.put(length);
    ASSERT_TRUE(pair.socket->receive());
    bool ok = true;
    EXPECT_FALSE(pair.socket->next(ok));
    EXPECT_FALSE(ok);
  }
}

TEST(FrameSocket, KeepsAtMostOneFrameOfAnEndlessSender) {
  Pair pair;
  // A valid length, and far more bytes than that.
  std::vector<std::uint8_t> flood(100 << 10, 1);
  flood[0] = flood[1] = 0;
  flood[2] = 4, flood[3] = 0;
  pair.put(flood);
  ASSERT_TRUE(pair.socket->receive());
  bool ok = true;
  EXPECT_TRUE(pair.socket->next(ok));
  EXPECT_FALSE(pair.socket->next(ok));
  EXPECT_FALSE(ok);  // the next length is 0x01010101
}

TEST(FrameSocket, ReportsTheEndOfTheOtherSide) {
  Pair pair;
  pair.raw.reset();
  EXPECT_FALSE(pair.socket->receive());
}

TEST(FrameSocket, DisconnectsAPeerThatDoesNotRead) {
  Pair pair;
  bool lives = true;
  for (unsigned i = 0; lives && i < 100; ++i) {
    pair.socket->out().resize(pair.socket->out().size() + kMostFrame);
    lives = pair.socket->flush();
  }
  EXPECT_FALSE(lives);
  EXPECT_LE(pair.socket->out().size(), FrameSocket::kMostUnsent + kMostFrame);
}

TEST(Endpoint, IsHostAndPort) {
  EXPECT_TRUE(Endpoint::parse("127.0.0.1:1234"));
  EXPECT_TRUE(Endpoint::parse("[::1]:1234"));
  for (const char* none : {"", "host", ":1", "host:", "127.0.0.1:port that is none"}) {
    const auto parsed = Endpoint::parse(none);
    ASSERT_FALSE(parsed) << none;
    EXPECT_EQ(parsed.error().code, wire::ErrorCode::kInvalid);
  }
}

// As Debian's /etc/hosts has it for the host's own name.
TEST(Endpoint, OfANameAtALoopbackAddressIsNoPlaceToListenAt) {
  for (const char* loopback : {"127.0.1.1:0", "[::1]:0"}) {
    auto at = Endpoint::parse(loopback);
    ASSERT_TRUE(at);
    at->name = "h1:7800";
    at->is_looked_up = true;
    const auto listener = listen_at(*at);
    ASSERT_FALSE(listener);
    EXPECT_EQ(listener.error().code, wire::ErrorCode::kInvalid);
    EXPECT_EQ(listener.error().text.rfind("no other host could connect to h1:7800, ", 0), 0u);
  }
}

TEST(Endpoint, OfALoopbackAddressIsOneThatTheUserChose) {
  for (const char* chosen : {"127.0.0.1:0", "127.1:0", "localhost:0"}) {
    const auto at = Endpoint::parse(chosen);
    ASSERT_TRUE(at);
    EXPECT_TRUE(listen_at(*at)) << chosen;
  }
}

}  // namespace
}  // namespace cepheus::replica
