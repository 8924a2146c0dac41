#include "controller/connections/engine/peer_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cepheus::connections {
namespace {

using testing::HasSubstr;
using Frame = std::vector<std::uint8_t>;

constexpr wire::Ipv4 kDialler(10, 0, 0, 1), kAccepter(10, 0, 0, 2);

wire::MrpKey key(char digit) { return *wire::MrpKey::parse(std::string(64, digit)); }

std::span<const std::uint8_t> body(const Frame& frame) {
  return std::span(frame).subspan(kFrameHeader);
}

PeerSession::Settings settings(bool is_dialler, const wire::MrpKey* key, std::uint8_t nonce) {
  PeerSession::Settings s;
  s.is_dialler = is_dialler;
  s.host = is_dialler ? kDialler : kAccepter;
  if (is_dialler) s.peer = kAccepter;
  s.nonce.fill(nonce);
  s.key = key;
  return s;
}

struct Pair {
  explicit Pair(const wire::MrpKey* a, const wire::MrpKey* b)
      : dialler(settings(true, a, 1)), accepter(settings(false, b, 2)) {}

  // Both HELLOs. False: one was refused, and `error` is the reason.
  bool greet() {
    for (auto [from, to] : {std::pair(&dialler, &accepter), std::pair(&accepter, &dialler)}) {
      const auto taken = to->open(body(from->hello()));
      if (!taken) return error = taken.error().text, false;
    }
    return true;
  }
  void make_ready() {
    ASSERT_TRUE(greet());
    ASSERT_TRUE(accepter.open(body(dialler.seal(about(MessageType::kReady, 0)))));
    ASSERT_TRUE(dialler.open(body(accepter.seal(about(MessageType::kReady, 0)))));
    ASSERT_TRUE(dialler.is_ready() && accepter.is_ready());
  }

  PeerSession dialler, accepter;
  std::string error;
};

TEST(PeerSession, CarriesMessagesOnceBothKnowTheKey) {
  const auto k = key('1');
  Pair pair(&k, &k);
  pair.make_ready();
  EXPECT_EQ(pair.accepter.peer(), kDialler);
  const auto got =
      pair.accepter.open(body(pair.dialler.seal(about(MessageType::kClosed, 7, "so"))));
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, about(MessageType::kClosed, 7, "so"));
}

TEST(PeerSession, WithoutKeysCarriesMessagesToo) {
  Pair pair(nullptr, nullptr);
  pair.make_ready();
  EXPECT_TRUE(pair.dialler.open(body(pair.accepter.seal(about(MessageType::kPing, 0)))));
}

TEST(PeerSession, RefusesAnotherKeyWithAReason) {
  const auto k = key('1'), other = key('2');
  Pair pair(&k, &other);
  ASSERT_TRUE(pair.greet());
  const auto refused = pair.accepter.open(body(pair.dialler.seal(about(MessageType::kReady, 0))));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("have different keys: give both"));
  EXPECT_FALSE(pair.accepter.is_ready());
}

TEST(PeerSession, RefusesAFrameTooShortForATag) {
  const auto k = key('1');
  for (const std::size_t size : {std::size_t{0}, wire::MrpKey::kTagSize - 1}) {
    Pair pair(&k, &k);
    pair.make_ready();
    EXPECT_THAT(pair.accepter.open(Frame(size)).error().text, HasSubstr("not of cepheus-cmd's"));
  }
  Pair pair(&k, &k);
  pair.make_ready();
  EXPECT_THAT(pair.accepter.open(Frame(wire::MrpKey::kTagSize)).error().text,
              HasSubstr("have different keys"))
      << "a wrong tag alone";
}

TEST(PeerSession, RefusesWhoHasAKeyWhereItHasNone) {
  const auto k = key('1');
  Pair with(&k, nullptr);
  EXPECT_FALSE(with.greet());
  EXPECT_THAT(with.error, HasSubstr("the daemon of 10.0.0.2 has no key"));
  Pair without(nullptr, &k);
  EXPECT_FALSE(without.greet());
  EXPECT_THAT(without.error, HasSubstr("the daemon of 10.0.0.1 has no key"));
}

TEST(PeerSession, RefusesRepeatsReorderingAndChange) {
  const auto k = key('1');
  for (int how = 0; how < 3; ++how) {
    Pair pair(&k, &k);
    pair.make_ready();
    const Frame first = pair.dialler.seal(about(MessageType::kPing, 0));
    Frame second = pair.dialler.seal(about(MessageType::kEstablished, 3));
    if (how == 0) {  // repeated
      ASSERT_TRUE(pair.accepter.open(body(first)));
      EXPECT_FALSE(pair.accepter.open(body(first)));
    } else if (how == 1) {  // out of order
      EXPECT_FALSE(pair.accepter.open(body(second)));
    } else {
      ASSERT_TRUE(pair.accepter.open(body(first)));
      second[kFrameHeader + 8] ^= 1;
      EXPECT_FALSE(pair.accepter.open(body(second)));
    }
  }
}

TEST(PeerSession, RefusesItsOwnFramesTurnedBack) {
  const auto k = key('1');
  Pair pair(&k, &k);
  ASSERT_TRUE(pair.greet());
  EXPECT_FALSE(pair.dialler.open(body(pair.dialler.seal(about(MessageType::kReady, 0)))));
}

TEST(PeerSession, RefusesMessagesOfAnotherConnection) {
  const auto k = key('1');
  Pair pair(&k, &k);
  ASSERT_TRUE(pair.greet());
  PeerSession again(settings(false, &k, 3));  // a new challenge
  ASSERT_TRUE(again.open(body(pair.dialler.hello())));
  EXPECT_FALSE(again.open(body(pair.dialler.seal(about(MessageType::kReady, 0)))));
}

TEST(PeerSession, RefusesAnotherHostThanTheOneDialled) {
  PeerSession dialler(settings(true, nullptr, 1));
  auto elsewhere = settings(false, nullptr, 2);
  elsewhere.host = wire::Ipv4(10, 0, 0, 9);
  const auto refused = dialler.open(body(PeerSession(elsewhere).hello()));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("10.0.0.9"));
}

TEST(PeerSession, TakesNothingButAHelloAndThenReady) {
  Pair pair(nullptr, nullptr);
  EXPECT_FALSE(pair.accepter.open(body(frame_of(about(MessageType::kPing, 0)))));
  ASSERT_TRUE(pair.greet());
  EXPECT_FALSE(pair.accepter.open(body(pair.dialler.seal(about(MessageType::kPing, 0)))));
}

TEST(PeerSession, ReceivesTheReasonOfARefusal) {
  Pair pair(nullptr, nullptr);
  ASSERT_TRUE(pair.greet());
  const auto opened = pair.dialler.open(body(pair.accepter.refusal("no")));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, wire::ErrorCode::kRefused);
  EXPECT_EQ(opened.error().text, "no");
}

TEST(PeerSession, ReceivesTheReasonOfARefusalOnceItIsReady) {
  const auto k = key('1');
  Pair pair(&k, &k);
  pair.make_ready();
  const auto opened = pair.dialler.open(body(pair.accepter.refusal("no")));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, wire::ErrorCode::kRefused);
  EXPECT_EQ(opened.error().text, "no");
}

}  // namespace
}  // namespace cepheus::connections
