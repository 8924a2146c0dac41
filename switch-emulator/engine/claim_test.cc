#include "switch-emulator/engine/claim.h"

#include <gtest/gtest.h>

#include <random>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

constexpr auto host_sync = [](SwitchConfig& c) { c.rules.source_change = SourceChange::kHostSync; };

TEST(Turns, RebaseEachHostsNumbersOnTheGroups) {
  auto net = make_star(3);
  net->message(0, 0, 2);
  net->ack(1, 2);
  net->ack(2, 2);
  net->clear();

  net->data(1, 0);  // host 1 has sent nothing yet: its own first PSN
  EXPECT_EQ(net->inbox(2), Texts({"data 3"}));
  EXPECT_EQ(net->inbox(0), Texts({"data 0"})) << "what host 0 sent itself does not count for it";
  net->ack(0, 0);
  net->ack(2, 3);
  EXPECT_EQ(net->inbox(1), Texts({"ack 0"}));
  EXPECT_EQ(net->path_view(0).turns_offset, 3u);

  net->data(0, 3);  // and again host 0
  EXPECT_EQ(net->inbox(1), Texts({"data 3"}));
  EXPECT_EQ(net->inbox(2), Texts({"data 4"}));
  net->ack(1, 3);
  net->ack(2, 4);
  EXPECT_EQ(net->inbox(0), Texts({"ack 3"}));
  EXPECT_EQ(net->count(Counter::kTurns), 3u);
}

TEST(Turns, KeepEveryConnectionGaplessOverManyTurnsAndTheWrap) {
  constexpr std::size_t kHosts = 4;
  constexpr std::int64_t kStep = 8000;  // a long turn: only its last packet is passed
  auto net = make_star(kHosts);
  std::mt19937 random(1);
  std::array<std::int64_t, kHosts> sent{}, received{};
  std::int64_t total = 0;
  const auto signed24 = [](std::int64_t v) { return distance(Psn(0), Psn(0) + v); };
  while (total < (1 << 24) + 10 * kStep) {
    const std::size_t source = random() % kHosts;
    const std::int64_t length = 1 + random() % kStep;
    total += length;
    net->data(source, sent[source] + length - 1);
    sent[source] += length;
    for (std::size_t h = 0; h < kHosts; ++h) {
      if (h == source) continue;
      received[h] += length;
      ASSERT_EQ(net->inbox(h), Texts({"data " + std::to_string(signed24(received[h] - 1))}));
      net->ack(h, received[h] - 1);
    }
    ASSERT_EQ(net->inbox(source), Texts({"ack " + std::to_string(signed24(sent[source] - 1))}));
  }
  EXPECT_EQ(net->buffers_in_use(), 0u);
}

TEST(OldDuplicates, AreAnsweredWithThemselvesAndGoNoFurther) {
  auto net = make_star(3);
  net->message(0, 0, 2);
  net->ack(1, 2);
  net->ack(2, 2);
  net->data(1, 0);
  net->clear();
  net->data(0, 1);  // the ACK for its last turn was lost
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->count(Counter::kOldDuplicateAnswered), 1u);
}

TEST(OldDuplicates, StealTheTurnWithTheRuleOff) {
  auto net = make_star(3, true, [](SwitchConfig& c) { c.rules.old_duplicate_answer = false; });
  net->message(0, 0, 2);
  net->ack(1, 2);
  net->ack(2, 2);
  net->data(1, 0);
  net->data(0, 1);
  EXPECT_EQ(net->view().source, TestNetwork::ip(0));
}

TEST(Numbering, ComesFromStateWhateverArrivesFirst) {
  for (const bool on : {true, false}) {
    auto net = make_star(3, true, [=](SwitchConfig& c) { c.rules.psn_from_state = on; });
    net->data(0, 1);  // its PSN 0 was lost
    EXPECT_EQ(net->inbox(1), on ? Texts({"data 1"}) : Texts({"data 0"}));
  }
}

TEST(Numbering, RefusesANewcomerFarFromItsState) {
  auto net = make_star(3);
  net->data(0, 9000);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->view().source, Ipv4());
  EXPECT_EQ(net->count(Counter::kDropDataWindow), 1u);
}

// All have the first turn, packets 0 to 2 of host 0, and host 1 has sent packet 3.
std::unique_ptr<TestNetwork> next_source_has_begun() {
  auto net = make_star(3, true, host_sync);
  net->message(0, 0, 2);
  net->ack(1, 2);
  net->ack(2, 2);
  net->data(1, 3);
  net->clear();
  return net;
}

TEST(HostSync, AdmitsANewSourceAtTheNextPsnOnly) {
  auto net = make_star(3, true, host_sync);
  net->message(0, 0, 2);
  net->ack(1, 2);
  net->ack(2, 2);
  net->clear();
  net->data(1, 2);  // within the current turn: two sources at once
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->count(Counter::kDropConflict), 1u);
  net->data(1, 3);
  EXPECT_EQ(net->inbox(2), Texts({"data 3"}));
  EXPECT_EQ(net->inbox(0), Texts({"data 3"})) << "PSNs mean the same everywhere";
  net->ack(0, 3);
  net->ack(2, 3);
  EXPECT_EQ(net->inbox(1), Texts({"ack 3"}));
}

// Nobody else would: receivers never see the packets behind it.
TEST(HostSync, AsksANewSourceOnceForItsLostFirstPacket) {
  auto net = make_star(3, true, host_sync);
  net->message(0, 0, 2);
  net->ack(1, 2);
  net->ack(2, 2);
  net->clear();
  net->data(1, 4);
  net->data(1, 5);
  EXPECT_EQ(net->inbox(1), Texts({"nak 3"}));
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->count(Counter::kNewcomerNak), 1u);
  EXPECT_EQ(net->count(Counter::kDropConflict), 1u);
  net->data(1, 3);
  EXPECT_EQ(net->inbox(2), Texts({"data 3"}));
}

// The newcomer spends one of its retries on a NAK from its switch, and none on what receivers say of
// the same packet: with two gone, its time-outs are over before a silent member is evicted.
TEST(HostSync, AsksANewSourceForItsFirstPacketOnceThoughReceiversMissItToo) {
  auto net = make_star(3, true, host_sync);
  net->message(0, 0, 2);
  net->ack(1, 2);
  net->ack(2, 2);
  net->clear();
  net->data(1, 4);
  ASSERT_EQ(net->inbox(1), Texts({"nak 3"}));
  net->clear();
  net->message(1, 3, 4);  // late, not lost; or the repeat
  net->ack(0, 4);
  net->nak(2, 3);
  EXPECT_EQ(net->inbox(1), Texts());
  net->message(1, 3, 4);
  net->ack(2, 4);
  EXPECT_EQ(net->inbox(1), Texts({"ack 4"}));
}

TEST(HostSync, AsksNobodyForAFirstPacketFarAhead) {
  auto net = make_star(3, true, host_sync);
  net->message(0, 0, 2);
  net->ack(1, 2);
  net->ack(2, 2);
  net->clear();
  net->data(1, 9000);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropConflict), 1u);
}

// Its ACK was lost, or its queue pair was stopped before it had sent it: the last source would have
// to time out.
TEST(HostSync, TakesANewSourcesFirstPacketAsItsAcknowledgement) {
  auto net = make_star(3, true, host_sync);
  net->message(0, 0, 2);
  net->ack(2, 2);
  net->clear();
  net->data(1, 3);
  EXPECT_EQ(net->inbox(0), Texts({"ack 2", "data 3"}));
  EXPECT_EQ(net->inbox(2), Texts({"data 3"}));
}

TEST(HostSync, TakesItForTheSendersAcknowledgementOnly) {
  auto net = make_star(3, true, host_sync);
  net->message(0, 0, 2);
  net->clear();
  net->data(1, 3);
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->inbox(2), Texts());
  net->ack(2, 2);
  EXPECT_EQ(net->inbox(0), Texts({"ack 2", "data 3"}));
}

TEST(HostSync, AnswersOldDuplicates) {
  auto net = next_source_has_begun();
  net->data(0, 1);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
}

TEST(HostSync, HoldsANewcomerAtTheGate) {
  auto net = make_star(3, true, host_sync);
  net->data(0, 0);
  net->ack(1, 0);
  net->clear();
  net->data(1, 1);
  EXPECT_EQ(net->inbox(2), Texts());
  net->ack(2, 0);
  EXPECT_EQ(net->inbox(2), Texts({"data 1"}));
}

// The last source has not moved its queue pair's PSN on yet, so it asks for what it sent itself.
TEST(HostSync, AsksTheNewSourceToWaitForTheLastOne) {
  auto net = next_source_has_begun();
  net->nak(0, 0);
  EXPECT_EQ(net->inbox(1), Texts({"rnr 3 t20"}));
  net->clear();
  net->nak(0, 0);
  EXPECT_EQ(net->inbox(1), Texts()) << "once is enough until it begins again";
  net->ack(2, 3);
  net->data(1, 3);
  EXPECT_EQ(net->inbox(0), Texts({"data 3"}));
  net->ack(0, 3);
  EXPECT_EQ(net->inbox(1), Texts({"rnr 3 t22", "ack 3"}));
  net->clear();
  net->nak(0, 0);
  EXPECT_EQ(net->inbox(1), Texts()) << "a late one, of before";
  EXPECT_EQ(net->count(Counter::kHandoverRnr), 2u);
}

// It says only once what it misses. A RESET that takes longer than the first wait must not cost the
// new source a time-out.
TEST(HostSync, AsksAgainForAsLongAsTheLastSourceIsSilent) {
  auto net = make_star(3, true, host_sync);
  net->message(0, 0, 2);
  net->ack(1, 2);
  net->ack(2, 2);
  net->message(1, 3, 4);
  net->nak(0, 0);
  net->ack(2, 4);
  for (const char* rnr : {"rnr 3 t22", "rnr 3 t24", "rnr 3 t26", "rnr 3 t26"}) {
    net->clear();
    net->message(1, 3, 4);
    EXPECT_EQ(net->inbox(1), Texts({rnr}));
  }
  net->ack(0, 3);
  net->clear();
  net->message(1, 3, 4);
  EXPECT_EQ(net->inbox(1), Texts({"ack 3"})) << "it has synchronised";
  net->ack(0, 4);
  EXPECT_EQ(net->inbox(1), Texts({"ack 4"}));
}

TEST(HostSync, LeavesRepeatsAloneWhereNobodyHasToWait) {
  auto net = next_source_has_begun();
  net->data(1, 3);
  EXPECT_EQ(net->inbox(1), Texts());
}

TEST(HostSync, KeepsWhatFollowsAHeldPacket) {
  auto net = make_star(3, true, host_sync);
  net->data(0, 0);
  net->ack(1, 0);
  net->clear();
  net->data(1, 1);
  net->data(1, 2);
  EXPECT_EQ(net->inbox(2), Texts());
  net->ack(2, 0);
  EXPECT_EQ(net->inbox(2), Texts({"data 1", "data 2"}));
  EXPECT_EQ(net->count(Counter::kDropConflict), 0u);
}

TEST(MessageCount, GoesOnOverAHostsTurns) {
  auto net = make_star(2);
  const auto msn = [&](std::size_t h) {
    const auto frame = Frame::from_bytes(net->frames(h).back());
    return wire::RoceHeaders::parse(*frame)->aeth.msn;
  };
  net->data(0, 0);
  net->data(0, 1);
  net->ack(1, 1);
  net->data(1, 0);
  net->ack(0, 0);
  EXPECT_EQ(msn(1), 1u);
  net->message(0, 2, 4);
  net->ack(1, 4);
  EXPECT_EQ(msn(0), 3u);
}

}  // namespace
}  // namespace cepheus::fabric
