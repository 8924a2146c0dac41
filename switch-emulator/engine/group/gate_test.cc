#include "switch-emulator/engine/group/gate.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

TEST(Gate, HoldsANewcomerUntilAllHaveTheOldTurn) {
  auto net = make_star_amid(4, 0);
  net->ack({1, 2}, 0);
  net->clear();
  net->data(1, 0);
  net->data(1, 1);
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->inbox(1), Texts()) << "held, not refused";
  EXPECT_EQ(net->payloads.in_use(), 2u);
  EXPECT_EQ(net->view().next_source, TestNetwork::ip(1));

  net->ack(3, 0);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0", "data 0", "data 1"}));
  EXPECT_EQ(net->inbox(2), Texts({"data 1", "data 2"}));
  EXPECT_EQ(net->payloads.in_use(), 0u);
  EXPECT_TRUE(net->view().next_source.is_unset());
  EXPECT_EQ(net->count(Counter::kGateHeld), 2u);
}

// A newcomer breaks rule C1, or its last answer was lost: in both cases the old source must
// not get an ACK for this member.
TEST(Gate, WaitsForTheNewcomersOwnAnswerToo) {
  auto net = make_star_amid(3, 0);
  net->ack(2, 0);
  net->clear();
  net->data(1, 0);
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->inbox(0), Texts());
  net->ack(1, 0);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0", "data 0"}));
  EXPECT_EQ(net->inbox(2), Texts({"data 1"}));
}

TEST(Gate, LetsHeldPacketsGoInTheOrderOfTheirPsnsAndRepeatsOnce) {
  auto net = make_star_amid(3, 0);
  net->ack(1, 0);
  net->clear();
  for (const int psn : {1, 0, 2, 1}) net->data(1, psn);
  EXPECT_EQ(net->payloads.in_use(), 3u);
  EXPECT_EQ(net->count(Counter::kDropGateAnswered), 1u);
  EXPECT_EQ(net->inbox(1), Texts());
  net->data(1, 0);  // it timed out: without an answer it would give up
  EXPECT_EQ(net->inbox(1), Texts({"rnr 0 t14"}));
  net->ack(2, 0);
  EXPECT_EQ(net->inbox(2), Texts({"data 1", "data 2", "data 3"}));
}

TEST(Gate, AnswersRnrOnceIfItsLimitIsZero) {
  auto net = make_star(3, true, [](SwitchConfig& c) {
    c.max_held = 0;
    c.gate_rnr_timer = 7;
  });
  net->data(0, 0);
  net->ack(1, 0);
  net->clear();
  net->message(1, 0, 3);
  EXPECT_EQ(net->inbox(1), Texts({"rnr 0 t7"}));
  for (const auto& answer : {"rnr 0 t9", "rnr 0 t11", "rnr 0 t13", "rnr 0 t14", "rnr 0 t14"}) {
    net->message(1, 0, 3);  // it waited and tries again: the longer this lasts, the less often
    EXPECT_EQ(net->inbox(1), Texts({answer}));
  }
  EXPECT_EQ(net->count(Counter::kGateRnr), 6u);
  EXPECT_EQ(net->inbox(2), Texts());
  net->ack(2, 0);
  net->data(1, 0);
  EXPECT_EQ(net->inbox(2), Texts({"data 1"}));
}

TEST(Gate, HoldsAFewAndAnswersRnrToMore) {
  auto net = make_star(3, true, [](SwitchConfig& c) { c.max_held = 2; });
  net->data(0, 0);
  net->ack(1, 0);
  net->clear();
  net->message(1, 0, 3);
  EXPECT_EQ(net->inbox(1), Texts({"rnr 0 t1"}));
  EXPECT_EQ(net->payloads.in_use(), 2u);
  net->ack(2, 0);
  EXPECT_EQ(net->inbox(2), Texts({"data 1", "data 2"}));
}

// Of the frames of all gates. Those that were let through leave room again.
TEST(Gate, AnswersRnrBeyondItsPortsShareOfHeldFrames) {
  auto net = make_star(3, true, [](SwitchConfig& c) { c.max_held = HeldFrames::kMost; });
  constexpr int kMessages = HeldFrames::kMost;
  net->data(0, 0);
  net->ack(1, 0);
  net->clear();
  for (int psn = 0; psn < kMessages; ++psn) net->data(1, psn);
  EXPECT_EQ(net->inbox(1), Texts({"rnr 0 t1"}));
  const int held = static_cast<int>(net->payloads.in_use());
  EXPECT_GT(held, kMessages / 2);
  EXPECT_LT(held, kMessages);
  net->ack(2, 0);
  EXPECT_EQ(net->payloads.in_use(), 0u);
  EXPECT_EQ(net->count(Counter::kGateLetThrough), static_cast<std::uint64_t>(held));

  net->ack(0, held - 1);
  net->ack(2, held);
  net->clear();
  net->data(2, 0);
  EXPECT_EQ(net->inbox(1), Texts({"data 1"}));
}

TEST(Gate, AnswersWithTheConfiguredTimeIfThatIsTheLongestOrLonger) {
  Gate gate;
  for (const std::uint8_t first : {0, 14, 15, 31}) {  // code 0 is the longest time
    for (int answer = 0; answer < 3; ++answer) EXPECT_EQ(gate.next_timer(first), first);
  }
  EXPECT_EQ(gate.next_timer(13), 13);
  EXPECT_EQ(gate.next_timer(13), 14);
}

// A wait without an end: the number of answers must not wrap.
TEST(Gate, AnswersWithTheLongestTimeHoweverOftenItHasAnswered) {
  auto net = make_star(3, true, [](SwitchConfig& c) { c.max_held = 0; });
  net->data(0, 0);
  net->ack(1, 0);
  for (int i = 0; i < 7; ++i) net->message(1, 0, 3);
  net->clear();
  for (int i = 0; i < 256; ++i) {
    net->message(1, 0, 3);
    ASSERT_EQ(net->inbox(1), Texts({"rnr 0 t14"})) << i;
  }
}

// The store has no room for the buffer; frames that are held already stay, and are let through.
TEST(Gate, AnswersRnrIfTheBufferCantBeHeld) {
  auto net = make_star_amid(3, 0);
  net->ack(1, 0);
  net->data(1, 0);
  net->clear();
  net->payloads.has_space = false;
  net->data(1, 1);
  EXPECT_EQ(net->inbox(1), Texts({"rnr 0 t1"}));
  EXPECT_EQ(net->payloads.in_use(), 1u);
  net->ack(2, 0);
  EXPECT_EQ(net->inbox(2), Texts({"data 1"}));
  EXPECT_EQ(net->payloads.in_use(), 0u);
}

// The old source is dead, host 2 lacks its packets, and no leader is left to evict host 2.
TEST(Gate, RefusesANewcomerIfTheLastTurnNeverEnds) {
  auto net = make_star(3);
  const Duration age = net->config(0).gate_age;
  net->data(0, 0);
  net->ack(1, 0);
  net->advance(age + 1s);  // silence without a waiting newcomer does not count
  net->clear();
  net->message(1, 0, 1);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->payloads.in_use(), 2u);
  net->advance(age - 1ms);
  net->data(1, 0);
  EXPECT_EQ(net->inbox(1), Texts({"rnr 0 t14"}));
  net->advance(2ms);
  net->data(1, 0);
  EXPECT_EQ(net->inbox(1), Texts({"fatal 0 c3"}));
  EXPECT_EQ(net->payloads.in_use(), 0u);
  EXPECT_EQ(net->count(Counter::kGateGaveUp), 1u);
  EXPECT_EQ(net->inbox(2), Texts());
}

TEST(Gate, WaitsWhileTheOldSourceSends) {
  auto net = make_star(3);
  const Duration age = net->config(0).gate_age;
  net->data(0, 0);
  net->ack(1, 0);
  net->data(1, 0);
  net->clear();
  for (int i = 0; i < 3; ++i) {
    net->advance(age - 1ms);
    net->data(0, 0);
    net->rnr(2, 0);  // its program computes
    net->data(1, 0);
    EXPECT_EQ(net->inbox(1), Texts({"rnr 0 t14"}));
  }
  net->data(0, 0);
  net->ack(2, 0);
  EXPECT_EQ(net->inbox(2), Texts({"data 0", "data 0", "data 0", "data 0", "data 1"}));
}

// Host 1 computes and lacks packet 0, host 3 lacks packet 1. The old source repeats packet 0, which
// the newcomer's switch does not lack, again and again.
TEST(Gate, NoticesAnOldSourceThatRepeatsForOtherBranches) {
  auto net = make_pair_of_switches();
  const Duration age = net->config(1).gate_age;
  net->data(0, 0);
  net->data(0, 1);
  net->ack(2, 1);
  net->ack(3, 0);
  net->clear();
  net->data(2, 0);
  int over_trunk = 0;
  net->on_trunk = [&](std::size_t, std::size_t, const wire::RoceHeaders& h) {
    over_trunk += h.bth.opcode == wire::Opcode::kRcSendOnly;
  };
  constexpr int kRepeats = 64;
  for (int i = 0; i < kRepeats; ++i) {
    net->advance(age / 32 + 1ms);
    net->data(0, 0);
    net->rnr(1, 0);
    net->data(2, 0);
    EXPECT_EQ(net->inbox(2), Texts({"rnr 0 t14"}));
  }
  EXPECT_EQ(over_trunk, kRepeats / 2) << "seldom";
  EXPECT_EQ(net->inbox(3), Texts()) << "hosts that lack nothing get nothing";
  for (const int psn : {0, 1}) {
    net->data(0, psn);
    net->ack(1, psn);
  }
  net->ack(3, 1);
  EXPECT_EQ(net->inbox(3), Texts({"data 1", "data 2"}));
}

TEST(Gate, ReleasesItsFramesWhenTheGroupEnds) {
  auto net = make_star_amid(3, 0);
  net->data(1, 0);
  EXPECT_EQ(net->payloads.in_use(), 1u);
  net->control(0, wire::MrpType::kUnregister, 1);
  EXPECT_EQ(net->payloads.in_use(), 0u);
}

TEST(Gate, AnswersRnrToASecondNewcomer) {
  auto net = make_star_amid(4, 0);
  net->data(1, 0);
  net->data(2, 0);
  EXPECT_EQ(net->inbox(2), Texts({"rnr 0 t1"}));
}

}  // namespace
}  // namespace cepheus::fabric
