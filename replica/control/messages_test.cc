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
  m.rc = {0x0A000001, 17, 0xABCDEF};
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
  m.join.rc = {1, 2, 3};
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

// A frame's body; checks its length.
Bytes body_of(const Bytes& frame, MessageType type) {
  EXPECT_EQ(wire::load_be32(frame.data()), frame.size() - kFrameHeader);
  EXPECT_EQ(frame[kFrameHeader], static_cast<std::uint8_t>(type));
  return {frame.begin() + kFrameHeader + 1, frame.end()};
}

template <typename Message>
Bytes body(const Message& message, MessageType type) {
  Bytes frame;
  encode(message, frame);
  return body_of(frame, type);
}

TEST(Messages, RequestsArriveAsTheyWereSent) {
  const RequestMessage sent = some_request();
  const auto got = decode_request(body(sent, MessageType::kRequest));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->request.type, sent.request.type);
  EXPECT_EQ(got->request.serial, sent.request.serial);
  EXPECT_EQ(got->request.epoch, sent.request.epoch);
  EXPECT_EQ(got->request.config, sent.request.config);
  EXPECT_EQ(got->request.range, sent.request.range);
  EXPECT_EQ(got->request.generation, sent.request.generation);
  EXPECT_EQ(got->request.words, sent.request.words);
  EXPECT_EQ(got->rc, sent.rc);
  EXPECT_EQ(got->multicast, sent.multicast);
  EXPECT_EQ(got->progress, sent.progress);
}

TEST(Messages, AnswersArriveAsTheyWereSent) {
  const AnswerMessage sent = some_answer();
  const auto got = decode_answer(body(sent, MessageType::kAnswer));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->answer.type, sent.answer.type);
  EXPECT_EQ(got->answer.serial, sent.answer.serial);
  EXPECT_EQ(got->answer.verdict, sent.answer.verdict);
  EXPECT_EQ(got->answer.promised, sent.answer.promised);
  EXPECT_EQ(got->answer.config, sent.answer.config);
  EXPECT_EQ(got->answer.loss, sent.answer.loss);
  EXPECT_EQ(got->answer.words, sent.answer.words);
  EXPECT_EQ(got->join, sent.join);
  EXPECT_EQ(got->text, sent.text);
}

TEST(Messages, GreetingsArriveAsTheyWereSent) {
  EXPECT_EQ(decode_challenge(body(some_challenge(), MessageType::kChallenge)), some_challenge());
  EXPECT_EQ(decode_hello(body(some_hello(), MessageType::kHello)), some_hello());
  Welcome welcome{{1 << 30, 4096, 1 << 20}, {}};
  welcome.tag.fill(9);
  const auto got = decode_welcome(body(welcome, MessageType::kWelcome));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->geometry.size, welcome.geometry.size);
  EXPECT_EQ(got->geometry.block, welcome.geometry.block);
  EXPECT_EQ(got->geometry.chunk, welcome.geometry.chunk);
  EXPECT_EQ(got->tag, welcome.tag);
}

TEST(Messages, DigestsArriveAsTheyWereSent) {
  const DigestRequest request{1, 2, 3};
  EXPECT_EQ(decode_digest_request(body(request, MessageType::kDigestRequest)), request);
  const auto got = decode_digests(body(some_digests(), MessageType::kDigests));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->request, some_digests().request);
  EXPECT_EQ(got->digests, some_digests().digests);
}

// Each type's body, and whether a body decodes.
struct Kind {
  const char* name;
  Bytes body;
  std::function<bool(std::span<const std::uint8_t>)> is_taken;
};

std::vector<Kind> kinds() {
  return {{"challenge", body(some_challenge(), MessageType::kChallenge),
           [](auto b) { return decode_challenge(b).has_value(); }},
          {"hello", body(some_hello(), MessageType::kHello),
           [](auto b) { return decode_hello(b).has_value(); }},
          {"welcome", body(Welcome{}, MessageType::kWelcome),
           [](auto b) { return decode_welcome(b).has_value(); }},
          {"request", body(some_request(), MessageType::kRequest),
           [](auto b) { return decode_request(b).has_value(); }},
          {"answer", body(some_answer(), MessageType::kAnswer),
           [](auto b) { return decode_answer(b).has_value(); }},
          {"digest request", body(DigestRequest{}, MessageType::kDigestRequest),
           [](auto b) { return decode_digest_request(b).has_value(); }},
          {"digests", body(some_digests(), MessageType::kDigests),
           [](auto b) { return decode_digests(b).has_value(); }}};
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
  Bytes request = body(some_request(), MessageType::kRequest);
  // Behind type, serial, epoch, config, range and generation.
  constexpr std::size_t kCount = 1 + 8 + 16 + 28 + 8 + 8;
  ASSERT_EQ(wire::load_be32(request.data() + kCount), 2u);
  for (const std::uint32_t count : {3u, 0x20000000u, 0xFFFFFFFFu}) {
    wire::store_be32(request.data() + kCount, count);
    EXPECT_FALSE(decode_request(request)) << count;
  }
}

TEST(Messages, UnknownValuesAreRefused) {
  Bytes request = body(some_request(), MessageType::kRequest);
  request[0] = static_cast<std::uint8_t>(RequestType::kPing) + 1;
  EXPECT_FALSE(decode_request(request));
  Bytes hello = body(some_hello(), MessageType::kHello);
  hello[8 + 2] = 3;  // behind the magic number and the version: the role
  EXPECT_FALSE(decode_hello(hello));
  Bytes answer = body(some_answer(), MessageType::kAnswer);
  answer[1 + 8] = static_cast<std::uint8_t>(Verdict::kFailed) + 1;
  EXPECT_FALSE(decode_answer(answer));
}

}  // namespace
}  // namespace cepheus::replica
