#include "switch-emulator/live/datapath/unanswered_account.h"

#include <gtest/gtest.h>

#include <vector>

#include "wire/roce.h"

namespace cepheus::live {
namespace {

using namespace std::chrono_literals;

constexpr wire::Ipv4 kHost{10, 0, 0, 1}, kPeer{10, 0, 0, 2}, kAccomplice{10, 0, 0, 3};
constexpr wire::Instant kNow{1h};

wire::Frame roce(wire::Ipv4 from, wire::Ipv4 to) {
  wire::RoceHeaders headers;
  headers.bth.opcode = wire::Opcode::kRcAcknowledge;
  headers.aeth = wire::Aeth{};
  headers.ip.source = from;
  headers.ip.destination = to;
  wire::Frame frame;
  headers.emit(frame, 0);
  return frame;
}

wire::Frame datagram(const std::vector<std::uint8_t>& payload) {
  wire::UdpDatagram headers;
  headers.ip.source = kHost;
  headers.ip.destination = kPeer;
  wire::Frame frame;
  headers.emit(frame, payload);
  return frame;
}

// The number of frames after which the host has to wait beside others.
int frames_until_held(UnansweredAccount& account, const wire::Frame& frame) {
  for (int sent = 1; sent < 100'000; ++sent) {
    account.take(frame);
    if (account.update_account(kNow, 0, true).value_or(kNow) > kNow) return sent;
  }
  return 0;
}

TEST(UnansweredAccount, MakesAHostWithoutAnswersWaitBesideOthers) {
  UnansweredAccount account;
  const int sent = frames_until_held(account, roce(kHost, kPeer));
  EXPECT_GT(sent, UnansweredBudget::kBurst);
  EXPECT_LE(sent, UnansweredBudget::kBurst + static_cast<int>(AnsweredFrames::kPerAnswer) + 1);
}

TEST(UnansweredAccount, ForgetsTheExcessOfAHostThatIsAlone) {
  UnansweredAccount account;
  for (int sent = 0; sent < 100'000; ++sent) account.take(roce(kHost, kPeer));
  EXPECT_EQ(account.update_account(kNow, 0, false), std::nullopt);
  account.take(roce(kHost, kPeer));
  EXPECT_LT(account.update_account(kNow, 0, true).value(), kNow + 10ms)
      << "not the second for all those";
}

TEST(UnansweredAccount, AnAnswerPaysForFramesToItsSender) {
  UnansweredAccount account;
  const auto exhaust = [&](wire::Ipv4 peer) {
    while (!account.take(roce(kHost, peer))) {
    }
  };
  exhaust(kPeer);
  exhaust(kAccomplice);
  account.on_answer(roce(kAccomplice, kHost));
  EXPECT_TRUE(account.take(roce(kHost, kPeer)));
  EXPECT_FALSE(account.take(roce(kHost, kAccomplice)));
}

TEST(UnansweredAccount, AResultPaysForAFewFrames) {
  UnansweredAccount account;
  while (!account.take(roce(kHost, kPeer))) {
  }
  account.on_result(roce(kPeer, kHost));
  std::uint32_t paid = 0;
  while (!account.take(roce(kHost, kPeer))) ++paid;
  EXPECT_EQ(paid, AnsweredFrames::kPerResult);
}

TEST(UnansweredAccount, RepeatsUseUpTheCreditAndThenTheBudget) {
  UnansweredAccount account;
  const wire::Frame repeat = roce(kPeer, kHost);
  for (std::uint32_t n = 0; n < AnsweredFrames::kPerAnswer; ++n) account.take_repeat(repeat);
  EXPECT_EQ(account.update_account(kNow, 0, true), std::nullopt) << "nothing is unpaid";
  EXPECT_TRUE(account.take(roce(kHost, kPeer)));
  for (int n = 0; n < UnansweredBudget::kBurst; ++n) account.take_repeat(repeat);
  EXPECT_GT(account.update_account(kNow, 0, true).value(), kNow);
}

TEST(UnansweredAccount, NothingPaysForDatagramsAndLongOnesCostMore) {
  UnansweredAccount account;
  account.on_answer(datagram({1}));
  EXPECT_TRUE(account.take(datagram({1})));
  UnansweredAccount few_bytes, many_bytes;
  const int small = frames_until_held(few_bytes, datagram(std::vector<std::uint8_t>(1)));
  const int large = frames_until_held(many_bytes, datagram(std::vector<std::uint8_t>(3 * 64)));
  EXPECT_GT(small, 3 * large);
}

TEST(UnansweredAccount, LongPacketsCostMoreThanShortOnes) {
  static const std::vector<std::uint8_t> payload(4096);
  wire::Frame packet = roce(kHost, kPeer);
  packet.set_external_payload(payload, wire::kNoBuffer);
  UnansweredAccount short_ones, long_ones;
  EXPECT_GT(frames_until_held(short_ones, roce(kHost, kPeer)),
            UnansweredBudget::kBurst / 2 + frames_until_held(long_ones, packet));
}

// The switch reads and writes their payloads.
TEST(UnansweredAccount, LongResultsCostAsMuchAsManyFrames) {
  static const std::vector<std::uint8_t> payload(4096);
  wire::Frame result = roce(kPeer, kHost);
  result.set_external_payload(payload, wire::kNoBuffer);
  UnansweredAccount account;
  for (int n = 0; n < UnansweredBudget::kBurst / 16; ++n) account.charge_result(result);
  EXPECT_GT(account.update_account(kNow, 0, true).value(), kNow);
}

TEST(UnansweredAccount, CopiesAndFramesThatThePortRefusedCount) {
  UnansweredAccount copies;
  for (int n = 0; n < 2 * UnansweredBudget::kBurst; ++n) copies.charge(roce(kHost, kPeer));
  EXPECT_GT(copies.update_account(kNow, 0, true).value(), kNow);
  UnansweredAccount refused;
  EXPECT_GT(refused.update_account(kNow, 2 * UnansweredBudget::kBurst, true).value(), kNow);
  EXPECT_EQ(refused.update_account(kNow, 2 * UnansweredBudget::kBurst, true), std::nullopt)
      << "no new ones";
}

// In a group of many receivers each of them may lose a whole window of one host.
TEST(UnansweredAccount, ManyCopiesAtOnceHoldTheirHostForAboutFiftyMilliseconds) {
  UnansweredAccount account;
  for (int n = 0; n < 1'000'000; ++n) account.charge(roce(kHost, kPeer));
  const wire::Instant until = account.update_account(kNow, 0, true).value();
  EXPECT_GT(until, kNow + 50ms);
  EXPECT_LT(until, kNow + 52ms);
}

TEST(Contention, IsOfOtherHostsThatHaveSentLately) {
  Contention contention;
  contention.sent(0, kNow);
  EXPECT_FALSE(contention.others_send(0, kNow));
  EXPECT_TRUE(contention.others_send(1, kNow));
  contention.sent(1, kNow + 1ms);
  contention.sent(1, kNow + 2ms);
  EXPECT_TRUE(contention.others_send(1, kNow + 2ms)) << "host 0 has";
  EXPECT_FALSE(contention.others_send(1, kNow + Contention::kLasts));
}

}  // namespace
}  // namespace cepheus::live
