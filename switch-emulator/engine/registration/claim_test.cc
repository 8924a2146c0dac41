#include "switch-emulator/engine/registration/claim.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

constexpr auto host_sync = [](SwitchConfig& c) { c.rules.source_change = SourceChange::kHostSync; };

TEST(Turns, RebaseEachHostsNumbersToTheGroups) {
  auto net = make_star_amid(3, 2);
  net->ack({1, 2}, 2);
  net->clear();

  net->data(1, 0);  // host 1 has sent nothing yet: its first PSN is the group's
  EXPECT_EQ(net->inbox(2), Texts({"data 3"}));
  EXPECT_EQ(net->inbox(0), Texts({"data 0"})) << "host 0's own packets do not count for it";
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
  EXPECT_EQ(net->payloads.in_use(), 0u);
}

TEST(OldDuplicates, AreAnsweredWithThemselvesAndGoNoFurther) {
  auto net = make_star_amid(3, 2);
  net->ack({1, 2}, 2);
  net->data(1, 0);
  net->clear();
  net->data(0, 1);  // the ACK for its last turn was lost
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->count(Counter::kOldDuplicateAnswered), 1u);
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

// All have the first turn, packets 0 to 2 of host 0.
std::unique_ptr<TestNetwork> first_turn_has_ended() {
  auto net = make_star_amid(3, 2, host_sync);
  net->ack({1, 2}, 2);
  net->clear();
  return net;
}

// ... and host 1 has sent packet 3.
std::unique_ptr<TestNetwork> next_source_has_begun() {
  auto net = first_turn_has_ended();
  net->data(1, 3);
  net->clear();
  return net;
}

TEST(HostSync, AdmitsANewSourceAtTheNextPsnOnly) {
  auto net = first_turn_has_ended();
  net->data(1, 2);  // within the current turn: two sources at once
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->count(Counter::kDropConflict), 1u);
  net->data(1, 3);
  EXPECT_EQ(net->inbox(2), Texts({"data 3"}));
  EXPECT_EQ(net->inbox(0), Texts({"data 3"})) << "PSNs mean the same everywhere";
  net->ack({0, 2}, 3);
  EXPECT_EQ(net->inbox(1), Texts({"ack 3"}));
}

// No other node would: receivers never get the packets behind it.
TEST(HostSync, SendsANewSourceOneNakForItsLostFirstPacket) {
  auto net = first_turn_has_ended();
  net->data(1, 4);
  net->data(1, 5);
  EXPECT_EQ(net->inbox(1), Texts({"nak 3"}));
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->count(Counter::kNewcomerNak), 1u);
  EXPECT_EQ(net->count(Counter::kDropConflict), 1u);
  net->data(1, 3);
  EXPECT_EQ(net->inbox(2), Texts({"data 3"}));
}

// The newcomer spends one of its retries on a NAK from its switch, and none on receivers' NAKs for
// the same packet. With two retries gone, its time-outs would end before a silent member is
// evicted.
TEST(HostSync, SendsANewSourceOneNakThoughReceiversLackTheFirstPacketToo) {
  auto net = first_turn_has_ended();
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

TEST(HostSync, SendsNoNakForAFirstPacketFarAhead) {
  auto net = first_turn_has_ended();
  net->data(1, 9000);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropConflict), 1u);
}

// Its ACK was lost, or its queue pair was stopped before it had sent the ACK: the last source would
// have to time out.
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
  auto net = make_star_amid(3, 2, host_sync);
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

TEST(HostSync, HoldsANewcomerWhereTheLastSourceHasLeftAndAMemberLacksItsData) {
  auto net = make_star(4, true, host_sync);
  net->data(1, 0);
  for (const std::size_t host : {0, 3}) net->ack(host, 0);
  net->control(0, wire::MrpType::kEvict, 1, {net->member(1)});
  net->clear();
  net->data(0, 1);
  EXPECT_EQ(net->inbox(3), Texts()) << "host 2 will never have the packet before";
  net->control(0, wire::MrpType::kEvict, 1, {net->member(2)});
  EXPECT_EQ(net->inbox(3), Texts({"data 1"}));
}

// Its packet acknowledges all of that turn, but the turn's source has left.
TEST(HostSync, HoldsANewcomerThatLackedDataOfASourceThatHasLeft) {
  auto net = make_star(4, true, host_sync);
  net->data(1, 0);
  net->data(1, 1);
  net->ack(2, 0);
  net->ack(3, 1);
  net->control(0, wire::MrpType::kEvict, 1, {net->member(1)});
  net->clear();
  net->data(0, 2);
  EXPECT_EQ(net->inbox(3), Texts());
  net->control(0, wire::MrpType::kEvict, 1, {net->member(2)});
  EXPECT_EQ(net->inbox(3), Texts({"data 2"}));
}

TEST(HostSync, AdmitsTheOnlyMemberThatLackedDataOfASourceThatHasLeft) {
  auto net = make_star(4, true, host_sync);
  net->data(1, 0);
  for (const std::size_t host : {2, 3}) net->ack(host, 0);
  net->control(0, wire::MrpType::kEvict, 1, {net->member(1)});
  net->clear();
  net->data(0, 1);
  EXPECT_EQ(net->inbox(3), Texts({"data 1"}));
}

TEST(HostSync, AnswersOldDuplicatesWithTheirOwnPsnThoughTheLastSourceHasLeft) {
  auto net = make_star(3, true, host_sync);
  net->data(1, 0);
  for (const std::size_t host : {0, 2}) net->ack(host, 0);
  net->data(2, 1);
  for (const std::size_t host : {0, 1}) net->ack(host, 1);
  net->control(0, wire::MrpType::kEvict, 1, {net->member(2)});
  net->clear();
  net->data(1, 0);
  EXPECT_EQ(net->inbox(1), Texts({"ack 0"})) << "a NIC believes an ACK for more than it sent";
}

// The last source has not set its queue pair's PSN yet, so it sends NAKs for its own packets.
TEST(HostSync, MakesTheNewSourceWaitForTheLastOne) {
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

// The new source's own packet has no AckReq. A last source that has synchronised would take it
// silently, and be evicted while the new source is made to wait again and again.
TEST(HostSync, RequestsAnAcknowledgementOfThePacketAfterAWait) {
  auto net = first_turn_has_ended();
  net->data(1, 3, false);
  EXPECT_FALSE(requests_ack(*net, 0));
  net->nak(0, 0);
  for (int i = 0; i < 2; ++i) {
    net->data(1, 3, false);
    EXPECT_TRUE(requests_ack(*net, 0)) << "and has the right ICRC";
    EXPECT_TRUE(requests_ack(*net, 2)) << "it may acknowledge duplicates on request only";
  }
  net->data(1, 4, false);
  EXPECT_FALSE(requests_ack(*net, 0));
}

// It sends only one NAK. A RESET that takes longer than the first wait must not cost the new source
// a time-out.
TEST(HostSync, RepeatsTheWaitWhileTheLastSourceIsSilent) {
  auto net = make_star(3, true, host_sync);
  net->message(0, 0, 2);
  net->ack({1, 2}, 2);
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

// The last source is dead, and no leader evicts it.
TEST(HostSync, RefusesTheNewSourceIfTheLastOneNeverSynchronises) {
  auto net = next_source_has_begun();
  const wire::Duration age = net->config(0).gate_age;
  net->nak(0, 0);
  for (int i = 0; i < 4; ++i) {
    net->advance(age / 4);
    net->clear();
    net->data(1, 3);
    EXPECT_EQ(net->inbox(1), Texts({i == 0 ? "rnr 3 t22" : i == 1 ? "rnr 3 t24" : "rnr 3 t26"}));
  }
  net->advance(std::chrono::milliseconds(2));
  net->clear();
  net->data(1, 3);
  EXPECT_EQ(net->inbox(1), Texts({"fatal 3 c3"}));
  EXPECT_EQ(net->count(Counter::kHandoverGaveUp), 1u);
}

// The last source gets only packets that the new one repeats.
TEST(HostSync, WaitsForTheLastOneAgainAfterTheNewSourceWasSilentItself) {
  auto net = next_source_has_begun();
  const wire::Duration age = net->config(0).gate_age;
  net->nak(0, 0);
  for (const char* rnr : {"rnr 3 t22", "rnr 3 t24", "rnr 3 t26"}) {
    net->advance(age / 2 + std::chrono::milliseconds(2));
    net->clear();
    net->data(1, 3);
    EXPECT_EQ(net->inbox(1), Texts({rnr}));
  }
  net->ack({2, 0}, 3);
  net->clear();
  net->data(1, 3);
  EXPECT_EQ(net->inbox(1), Texts({"ack 3"}));
}

TEST(HostSync, LeavesRepeatsAloneWithoutAWaitingNewcomer) {
  auto net = next_source_has_begun();
  net->data(1, 3);
  EXPECT_EQ(net->inbox(1), Texts());
}

TEST(HostSync, KeepsPacketsBehindAHeldOne) {
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

// Turns with PSNs that pass half the circle, or all of it, are built of steps: only the last packet
// of each step is sent. Receivers' NICs would answer alike.
class LongTurns : public testing::TestWithParam<std::tuple<SourceChange, std::int64_t>> {
 protected:
  static constexpr std::int64_t kStep = 1 << 22;
  static constexpr std::size_t kHosts = 4;

  LongTurns() {
    net_ = make_pair_of_switches(true, [](SwitchConfig& c) {
      c.rules.source_change = std::get<0>(GetParam());
      c.data_window = kStep;
    });
  }
  static bool rebases() { return std::get<0>(GetParam()) == SourceChange::kRebase; }
  static std::int64_t length() { return std::get<1>(GetParam()); }
  static std::int64_t shown(std::int64_t psn) { return distance(Psn(0), Psn(0) + psn); }
  static std::string text(const char* what, std::int64_t psn) {
    return std::string(what) + " " + std::to_string(shown(psn));
  }
  // The next PSN of a host in its own numbering.
  std::int64_t next_sent(std::size_t h) const { return rebases() ? sent_[h] : total_; }
  std::int64_t next_received(std::size_t h) const { return rebases() ? total_ - sent_[h] : total_; }

  // `source` sends `packets`, and all others acknowledge each step, except the last one unless
  // `acknowledged`. A newcomer's first packet is sent by itself: under host-sync nothing else
  // reveals it.
  void send(std::size_t source, std::int64_t packets, bool acknowledged = true) {
    for (bool is_first = true; packets > 0; is_first = false) {
      const std::int64_t step = is_first ? 1 : std::min(packets, kStep);
      packets -= step;
      const std::int64_t psn = next_sent(source) + step - 1;
      net_->data(source, psn);
      total_ += step;
      sent_[source] += step;
      for (std::size_t h = 0; h < kHosts; ++h) {
        if (h == source) continue;
        ASSERT_EQ(net_->inbox(h), Texts({text("data", next_received(h) - 1)}))
            << "host " << h << " after " << total_ << " packets";
        if (packets > 0 || acknowledged) net_->ack(h, next_received(h) - 1);
      }
      const bool is_answered = packets > 0 || acknowledged;
      ASSERT_EQ(net_->inbox(source), is_answered ? Texts({text("ack", psn)}) : Texts());
    }
  }

  std::unique_ptr<TestNetwork> net_;
  std::array<std::int64_t, kHosts> sent_{};
  std::int64_t total_ = 0;
};

TEST_P(LongTurns, AreFollowedByThoseOfAnyOtherHost) {
  for (const std::size_t source : {0, 1, 2, 0, 3, 2}) send(source, length());
  for (const std::size_t source : {0, 1, 2, 3}) send(source, 1);
  EXPECT_EQ(net_->count(Counter::kOldDuplicateAnswered, 0), 0u);
  EXPECT_EQ(net_->count(Counter::kOldDuplicateAnswered, 1), 0u);
  EXPECT_EQ(net_->count(Counter::kDropConflict, 0) + net_->count(Counter::kDropConflict, 1), 0u);
}

TEST_P(LongTurns, LeaveTheirOwnDuplicatesOld) {
  send(0, length());
  send(2, 3);
  for (const std::int64_t back : {1, 3}) {
    const std::int64_t psn = (rebases() ? sent_[0] : total_ - 3) - back;
    net_->data(0, psn);
    EXPECT_EQ(net_->inbox(0), Texts({text("ack", psn)}));
    for (const std::size_t h : {1, 2, 3}) EXPECT_EQ(net_->inbox(h), Texts()) << "host " << h;
  }
  EXPECT_EQ(net_->count(Counter::kOldDuplicateAnswered, 0), 2u);
}

// The ACK of the last packet is lost between the switches. The next turn has begun at the farther
// one when that packet is repeated.
TEST_P(LongTurns, AreAnsweredByTheFarSwitchThoughItsTurnIsAnother) {
  send(0, length(), false);
  const std::int64_t last = next_sent(0) - 1;
  net_->ack(1, next_received(1) - 1);
  net_->lose = [](std::size_t from, std::size_t, const std::string& text) {
    return from == 1 && text.starts_with("ack");
  };
  net_->ack(2, next_received(2) - 1);
  net_->ack(3, next_received(3) - 1);
  net_->lose = nullptr;
  net_->data(2, next_sent(2));
  EXPECT_EQ(net_->inbox(3).size(), 1u) << "the far switch has begun the next turn";
  EXPECT_EQ(net_->inbox(0), Texts()) << "the near one has not";
  net_->data(0, last);
  EXPECT_EQ(net_->count(Counter::kOldDuplicateAnswered, 1), 1u);
  EXPECT_EQ(net_->inbox(0), Texts({text("ack", last), text("data", next_received(0))}));
}

// Rule C1 is broken: a packet that no member has must not be acknowledged.
TEST_P(LongTurns, AreNotInterruptedByAnotherSource) {
  send(0, length());
  net_->data(0, next_sent(0), false);  // a message that goes on
  net_->clear();
  net_->data(2, next_sent(2));
  net_->data(2, next_sent(2) + 1);
  EXPECT_EQ(net_->inbox(2), Texts());
  for (const std::size_t h : {0, 1, 3}) EXPECT_EQ(net_->inbox(h), Texts()) << "host " << h;
}

constexpr std::int64_t kHalf = 1 << 23, kCircle = 1 << 24;
INSTANTIATE_TEST_SUITE_P(
    Lengths, LongTurns,
    testing::Combine(testing::Values(SourceChange::kRebase, SourceChange::kHostSync),
                     testing::Values(kHalf - 1, kHalf, kHalf + 5, kCircle - 1, kCircle, kCircle + 5,
                                     kCircle + kHalf + 5, 3 * kCircle, (std::int64_t{1} << 31) + 1,
                                     (std::int64_t{1} << 32) + kHalf)));

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

// A NIC that completes messages by the MSN counts them from its last RESET on.
TEST(MessageCount, IsAheadOfHostsThatCountAnew) {
  auto net = first_turn_has_ended();
  net->data(0, 3);
  net->ack({1, 2}, 3);
  const auto frame = Frame::from_bytes(net->frames(0).back());
  const std::uint32_t msn = wire::RoceHeaders::parse(*frame)->aeth.msn;
  for (const std::uint32_t count : {1u, 1u << 22}) {
    EXPECT_GT(distance(wire::Psn(count), wire::Psn(msn)), 0) << count;
  }
}

}  // namespace
}  // namespace cepheus::fabric
