#include "replica/control/messages.h"

#include <gtest/gtest.h>

#include <functional>

#include "wire/byte_order.h"
#include "wire/splitmix.h"

namespace cepheus::replica {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr Epoch kEpoch{7, 0x1122334455667788};

RequestMessage some_request() {
  RequestMessage m;
  m.request.type = RequestType::kBitmap;
  m.request.serial = 9;
  m.request.epoch = kEpoch;
  m.request.config = {kEpoch, 3, Members::of_bits(0b101)};
  m.request.range = {4, 5};
  m.request.generation = 6;
  m.request.words = {1, ~std::uint64_t{0}};
  m.rc = {0x0A000001, 17, 0xABCDEF, 1024};
  m.multicast = Multicast::kMcRdma;
  m.progress = {true, 8, 1 << 20, 3 << 20};
  return m;
}

AnswerMessage some_answer() {
  AnswerMessage m;
  m.answer.type = RequestType::kPromise;
  m.answer.serial = 11;
  m.answer.verdict = Verdict::kRefused;
  m.answer.promised = kEpoch;
  m.answer.config = {kEpoch, 2, Members::all(3)};
  m.answer.loss = Loss::kMemory;
  m.answer.words = {5};
  m.join.member.fill(0x5A);
  m.join.region.fill(0xA5);
  m.join.rc = {1, 2, 3, 4096};
  m.join.rkey = 4;
  m.join.address = 5;
  m.text = "why";
  return m;
}

VolumeHello some_hello() {
  VolumeHello m;
  m.role = Role::kWriter;
  m.volume = "v";
  m.place = 1;
  m.count = 3;
  m.nonce.fill(1);
  m.tag.fill(2);
  return m;
}

Challenge some_challenge() {
  Challenge m;
  m.nonce.fill(3);
  return m;
}

Digests some_digests() { return {{4096, 8192, 4096}, {Digest{1}, Digest{2}}}; }

// A frame's body; checks its length and type.
template <typename Message>
Bytes body(const Message& message) {
  Bytes frame;
  encode(message, frame);
  EXPECT_EQ(wire::load_be32(frame.data()), frame.size() - kFrameHeader);
  EXPECT_EQ(frame[kFrameHeader], static_cast<std::uint8_t>(Message::kType));
  return {frame.begin() + kFrameHeader + 1, frame.end()};
}

// Each type's body, whether a body decodes, and whether it decodes into the message that was sent.
struct Kind {
  const char* name;
  Bytes body;
  std::function<bool(std::span<const std::uint8_t>)> is_taken, is_equal;
};

template <typename Message>
Kind kind_of(const char* name, int type, const Message& sent) {
  EXPECT_EQ(static_cast<int>(Message::kType), type) << "older replicas know it as " << name;
  return {name, body(sent), [](auto b) { return decode<Message>(b).has_value(); },
          [sent](auto b) { return decode<Message>(b) == sent; }};
}

std::vector<Kind> kinds() {
  Welcome welcome{{1 << 30, 4096, 1 << 20}, {}};
  welcome.tag.fill(9);
  return {kind_of("challenge", 1, some_challenge()),
          kind_of("hello", 2, some_hello()),
          kind_of("welcome", 3, welcome),
          kind_of("request", 5, some_request()),
          kind_of("answer", 6, some_answer()),
          kind_of("digest request", 9, DigestRequest{1, 2, 3}),
          kind_of("digests", 10, some_digests())};
}

TEST(Messages, MessagesArriveAsTheyWereSent) {
  for (const Kind& kind : kinds()) EXPECT_TRUE(kind.is_equal(kind.body)) << kind.name;
}

TEST(Messages, MessagesOfTheWrongLengthAreRefused) {
  for (const Kind& kind : kinds()) {
    ASSERT_TRUE(kind.is_taken(kind.body)) << kind.name;
    for (std::size_t n = 0; n < kind.body.size(); ++n) {
      EXPECT_FALSE(kind.is_taken(std::span(kind.body).first(n))) << kind.name << ", " << n;
    }
    Bytes longer = kind.body;
    longer.push_back(0);
    EXPECT_FALSE(kind.is_taken(longer)) << kind.name;
  }
}

// The sanitizers check that no hostile message is read beyond its end.
TEST(Messages, AnyBytesAreTakenOrRefused) {
  for (const Kind& kind : kinds()) {
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
      Bytes changed = kind.body;
      for (unsigned i = 0; i < 4; ++i) {
        const std::uint64_t random = wire::splitmix(seed, i);
        changed[random % changed.size()] = static_cast<std::uint8_t>(random >> 32);
      }
      kind.is_taken(changed);
    }
  }
}

TEST(Messages, CountsThatNoFrameHoldsAreRefused) {
  Bytes request = body(some_request());
  // Behind type, serial, epoch, config, range and generation.
  constexpr std::size_t kCount = 1 + 8 + 16 + 28 + 8 + 8;
  ASSERT_EQ(wire::load_be32(request.data() + kCount), 2u);
  for (const std::uint32_t count : {3u, 0x20000000u, 0xFFFFFFFFu}) {
    wire::store_be32(request.data() + kCount, count);
    EXPECT_FALSE(decode<RequestMessage>(request)) << count;
  }
}

TEST(Messages, UnknownValuesAreRefused) {
  Bytes request = body(some_request());
  request[0] = static_cast<std::uint8_t>(RequestType::kPing) + 1;
  EXPECT_FALSE(decode<RequestMessage>(request));
  Bytes hello = body(some_hello());
  hello[8 + 2] = 3;  // behind the magic number and the version: the role
  EXPECT_FALSE(decode<VolumeHello>(hello));
  Bytes answer = body(some_answer());
  answer[1 + 8] = static_cast<std::uint8_t>(Verdict::kFailed) + 1;
  EXPECT_FALSE(decode<AnswerMessage>(answer));
}

}  // namespace
}  // namespace cepheus::replica
