#include "switch-emulator/engine/group/feedback.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

constexpr auto with = [](auto change) { return [=](SwitchConfig& c) { change(c.rules); }; };

TEST(Feedback, AcknowledgesTheMinimum) {
  auto net = make_star_amid(4, 4);
  net->ack(1, 4);
  net->ack(2, 2);
  EXPECT_EQ(net->inbox(0), Texts());
  net->ack(3, 3);
  EXPECT_EQ(net->inbox(0), Texts({"ack 2"}));
  net->ack(2, 4);
  EXPECT_EQ(net->inbox(0), Texts({"ack 3"}));
  net->ack(3, 4);
  EXPECT_EQ(net->inbox(0), Texts({"ack 4"}));
  EXPECT_EQ(net->view().acknowledged, net->view().sent);
  EXPECT_EQ(net->count(Counter::kFeedbackAbsorbed), 2u);
}

TEST(Feedback, ReachesTheSourceAsFeedbackOfItsOwnConnection) {
  auto net = make_star(3);
  net->data(1, 0);
  net->clear();
  net->ack({0, 2}, 0);
  const auto frame = Frame::from_bytes(net->frames(1).at(0));
  const auto h = wire::RoceHeaders::parse(*frame);
  EXPECT_EQ(h->ip.source, TestNetwork::kGroup);
  EXPECT_EQ(h->ip.destination, TestNetwork::ip(1));
  EXPECT_EQ(h->bth.destination_qp, TestNetwork::qpn(1));
  EXPECT_EQ(h->aeth.value, wire::Aeth::kNoCreditLimit);
  EXPECT_EQ(h->aeth.msn, 1u);
}

TEST(Feedback, HasTheIcrcStateOfItsCause) {
  auto net = make_star(2);
  net->data(0, 0);
  for (const auto state : {wire::Icrc::kDeferred, wire::Icrc::kPresent}) {
    auto h = net->headers_from(1, wire::Opcode::kRcAcknowledge, 0);
    Frame ack = net->make_frame(1, h);
    ack.icrc_state = state;
    SwitchOutput out;
    net->sw(0).on_packet(net->now(), net->port_of(1), ack, out);
    if (state == wire::Icrc::kPresent) {
      EXPECT_TRUE(out.emits.empty()) << "already acknowledged";
      net->data(0, 1);
      h = net->headers_from(1, wire::Opcode::kRcAcknowledge, 1);
      net->sw(0).on_packet(net->now(), net->port_of(1), net->make_frame(1, h), out);
    }
    ASSERT_EQ(out.emits.size(), 1u);
    EXPECT_EQ(out.emits[0].frame.icrc_state, state);
  }
}

TEST(Feedback, IgnoresPsnsOutsideTheWindow) {
  auto net = make_star(2);
  net->message(0, 0, 1);
  net->ack(1, 1);
  net->clear();
  net->data(0, 2);
  net->ack(1, 3);   // more than was sent
  net->ack(1, -1);  // a fresh queue pair's stale ACK
  net->nak(1, 0);
  net->nak(1, 3);  // of the packet behind the last one
  net->nak(1, 4);
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->count(Counter::kDropFeedbackUnsent), 3u);
  EXPECT_EQ(net->count(Counter::kDropFeedbackStale), 2u);
  net->ack(1, 2);
  EXPECT_EQ(net->inbox(0), Texts({"ack 2"}));
}

TEST(Feedback, HoldsANakUntilAllHaveThePacketsBeforeIt) {
  auto net = make_star_amid(3, 4);
  net->nak(1, 3);  // host 1 has 0..2
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->view().held_nak, net->start_psn() + 3);
  net->ack(2, 1);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
  net->ack(2, 4);
  EXPECT_EQ(net->inbox(0), Texts({"nak 3"}));
  EXPECT_FALSE(net->view().held_nak);
}

TEST(Feedback, PassesTheSmallerOfTwoNaksAndForgetsTheOther) {
  auto net = make_star_amid(3, 4);
  net->nak(1, 3);
  net->nak(2, 1);
  EXPECT_EQ(net->inbox(0), Texts({"nak 1"}));
  EXPECT_FALSE(net->view().held_nak);
  net->ack(2, 4);
  EXPECT_EQ(net->inbox(0), Texts({"ack 2"}));
}

TEST(Feedback, DropsAHeldNakOnceItIsOvertaken) {
  auto net = make_star_amid(3, 4);
  net->nak(1, 2);
  net->ack({1, 2}, 4);
  EXPECT_EQ(net->inbox(0), Texts({"ack 4"}));
  EXPECT_FALSE(net->view().held_nak);
}

// A receiver sends one NAK for a loss: without passing it on, the source would time out.
TEST(Feedback, PassesANakThatCameBesideOneThatIsOvertaken) {
  auto net = make_star_amid(4, 9);
  net->nak(1, 3);
  net->nak(2, 6);
  net->data(0, 3);  // another receiver's request brings host 1's packet
  net->ack({1, 3}, 9);
  EXPECT_EQ(net->inbox(0), Texts({"nak 6"}));
}

// As the papers' switch, which leaves host 2's loss to a time-out.
TEST(Feedback, KeepsOneNakWithTheRuleOff) {
  auto net = make_star_amid(4, 9, with([](Rules& r) { r.several_naks = false; }));
  net->nak(2, 6);
  net->nak(1, 3);
  net->data(0, 3);
  net->ack({1, 3}, 9);
  EXPECT_EQ(net->inbox(0), Texts({"ack 5"}));
}

TEST(Feedback, KeepsTheSmallestOfManyNaks) {
  auto net = make_star_amid(8, 9);
  for (const int psn : {9, 7, 8, 6, 5}) net->nak(static_cast<std::size_t>(psn) - 4, psn);
  net->ack({6, 7}, 9);
  EXPECT_EQ(net->inbox(0), Texts({"nak 5"}));
  EXPECT_FALSE(net->view().held_nak) << "it sends the others' packets again, too";
}

// If it were passed on later, it would bring the packet and all later ones a second time.
TEST(Feedback, ForgetsAHeldNakWhenItsPacketIsRepeated) {
  for (const bool is_rnr : {false, true}) {
    auto net = make_star(3);
    net->message(0, 0, 4);
    if (is_rnr)
      net->rnr(1, 3);
    else
      net->nak(1, 3);
    ASSERT_TRUE(net->view().held_nak);
    net->clear();
    net->message(0, 3, 4);
    EXPECT_EQ(net->inbox(1), Texts({"data 3", "data 4"}));
    EXPECT_FALSE(net->view().held_nak) << is_rnr;
    net->ack(2, 4);
    EXPECT_EQ(net->inbox(0), Texts({"ack 2"}));
  }
}

TEST(Feedback, ChecksAHeldNakOnlyWhenTheSlowestMovesWithTheRuleOff) {
  for (const bool on : {true, false}) {
    auto net = make_star(3, true, with([=](Rules& r) { r.recheck_held_nak = on; }));
    net->message(0, 0, 4);
    net->ack({1, 2}, 0);
    net->data(0, 5);
    net->clear();
    // All have 0; host 1 is the slowest, and host 2 requests 1 again.
    net->nak(2, 1);
    EXPECT_EQ(net->inbox(0), on ? Texts({"nak 1"}) : Texts());
  }
}

TEST(Feedback, OrdersRnrNaksAsItOrdersNaks) {
  for (const bool on : {true, false}) {
    auto net = make_star_amid(3, 4, with([=](Rules& r) { r.rnr_ordering = on; }));
    net->rnr(1, 3, 5);
    EXPECT_EQ(net->inbox(0), on ? Texts() : Texts({"rnr 3 t5"}));
    net->ack(2, 2);
    if (on) {
      EXPECT_EQ(net->inbox(0), Texts({"rnr 3 t5"}));
    }
  }
}

TEST(Feedback, PrefersRnrOfTwoNaksForOnePacketWithTheLongestTimer) {
  auto net = make_star_amid(4, 4);
  net->nak(1, 2);
  net->rnr(2, 2, 5);
  net->rnr(1, 2, 0);  // code 0 is the longest
  net->ack(3, 4);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 2 t0"}));
}

TEST(Feedback, DropsTheSequenceNakAfterAnRnrUntilItsPacketIsRepeated) {
  auto net = make_star_amid(2, 3);
  net->rnr(1, 1);
  net->nak(1, 1);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t1"}));
  net->data(0, 1);
  net->nak(1, 1);
  EXPECT_EQ(net->inbox(0), Texts({"nak 1"}));
}

// Host 1 is not ready, and host 2 acknowledges on request only.
TEST(Feedback, RequestsAnAcknowledgementOfThePacketAfterAnRnr) {
  for (const bool on : {true, false}) {
    auto net = make_star(3, true, with([=](auto& rules) { rules.ack_after_rnr = on; }));
    for (const bool is_repeat : {false, true, true}) {
      net->data(0, 0, false);
      EXPECT_EQ(requests_ack(*net, 2), is_repeat && on);
      net->rnr(1, 0);
    }
    net->data(0, 1, false);
    EXPECT_FALSE(requests_ack(*net, 2));
    net->nak(1, 0);
    net->data(0, 0, false);
    EXPECT_EQ(requests_ack(*net, 2), on);
  }
}

TEST(Feedback, SendsOneNakForAPacketThatSeveralLack) {
  auto net = make_star_amid(4, 3);
  net->ack({1, 2}, 0);
  net->nak(3, 1);
  EXPECT_EQ(net->inbox(0), Texts({"nak 1"}));
  net->nak(1, 1);
  net->nak(2, 1);
  EXPECT_EQ(net->inbox(0), Texts());
  net->ack({1, 2, 3}, 1);
  net->nak(2, 2);  // another packet, another NAK
  EXPECT_EQ(net->inbox(0), Texts({"ack 1", "nak 2"}));
}

// Seven hosts with answers that come one after another, each long after the repeat has passed. Each
// would spend one of the source's seven retries.
TEST(Feedback, SendsOneNakHoweverLateTheOthersCome) {
  for (const bool once : {true, false}) {
    auto net = make_star(8, true, with([=](Rules& r) { r.nak_once = once; }));
    net->data(0, 0);
    for (std::size_t host = 1; host < 8; ++host) net->ack(host, 0);
    net->data(0, 2);  // 1 is lost on the source's own link
    net->clear();
    for (std::size_t host = 1; host < 8; ++host) {
      net->nak(host, 1);
      net->nak(host, 1);  // duplicated on its way
      net->message(0, 1, 2);
    }
    EXPECT_EQ(net->inbox(0), once ? Texts({"nak 1"}) : Texts(7, "nak 1"));
    for (std::size_t host = 1; host < 8; ++host) net->ack(host, 2);
    EXPECT_EQ(net->inbox(0), Texts({"ack 2"}));
  }
}

TEST(Feedback, SendsANakForTheSamePsnAgainInAnotherTurn) {
  auto net = make_star(3);
  net->data(0, 1);
  net->nak(1, 0);
  net->nak(2, 0);
  net->message(0, 0, 1);
  net->ack({1, 2}, 1);
  net->clear();
  net->data(1, 1);  // its first packet is lost
  net->nak(0, 2);
  EXPECT_EQ(net->inbox(1), Texts());
  net->nak(2, 2);
  EXPECT_EQ(net->inbox(1), Texts({"nak 0"}));
}

TEST(Feedback, PassesFatalNaksAtOnceAtTheMinimum) {
  auto net = make_star_amid(3, 4);
  net->ack(1, 4);
  net->feedback(2, 3, wire::AckKind::kNak, 3);
  EXPECT_EQ(net->inbox(0), Texts({"fatal 0 c3"}));
}

TEST(Feedback, DropsReservedSyndromes) {
  auto net = make_star_amid(2, 0);
  net->feedback(1, 0, wire::AckKind::kNak, 9);
  net->feedback(1, 0, wire::AckKind::kReserved, 0);
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->count(Counter::kDropMalformed), 2u);
}

TEST(Feedback, IsDroppedBeforeAnyHostHasSent) {
  auto net = make_star(2);
  net->ack(1, 0);
  EXPECT_EQ(net->count(Counter::kDropFeedbackNoSource), 1u);
}

TEST(Feedback, PassesCongestionNotificationsToTheSource) {
  auto net = make_star(3);
  net->cnp(1);
  EXPECT_EQ(net->count(Counter::kDropFeedbackNoSource), 1u);
  net->data(0, 0);
  net->clear();
  net->cnp(1);
  net->cnp(1);
  EXPECT_EQ(net->inbox(0), Texts({"cnp", "cnp"}));
  EXPECT_EQ(net->count(Counter::kCnpToSource), 2u);
}

TEST(Feedback, CountsCompletelyAcknowledgedMessages) {
  auto net = make_star(2);
  const auto msn = [&] {
    const auto frame = Frame::from_bytes(net->frames(0).back());
    return wire::RoceHeaders::parse(*frame)->aeth.msn;
  };
  net->message(0, 0, 2);
  net->data(0, 3);
  net->message(0, 4, 9);
  net->ack(1, 3);
  EXPECT_EQ(msn(), 2u);
  net->ack(1, 8);
  EXPECT_EQ(msn(), 2u);
  net->data(0, 9);  // a repeat ends no second message
  net->ack(1, 9);
  EXPECT_EQ(msn(), 3u);
}

TEST(Feedback, ComparesPsnsOnTheirCircle) {
  // An epoch with a start PSN close below the wrap.
  auto net = make_star(2, false);
  const auto turns = Psn::kMask + 1 - wire::group_start_psn(TestNetwork::kGroup, 1).value();
  net->set_up_group();
  // Moves up to the wrap in steps of the window.
  std::int64_t psn = 0;
  net->data(0, 0);
  net->ack(1, 0);
  while (psn + 8000 < static_cast<std::int64_t>(turns)) {
    psn += 8000;
    net->data(0, psn);
    net->ack(1, psn);
  }
  net->clear();
  const auto wrap = static_cast<std::int64_t>(turns);
  net->message(0, wrap - 1, wrap + 1);
  net->nak(1, wrap + 1);
  EXPECT_EQ(net->inbox(0).size(), 1u);
  EXPECT_EQ(net->view().acknowledged, Psn(0));
  net->ack(1, wrap + 1);
  EXPECT_EQ(net->view().acknowledged, Psn(1));
}

}  // namespace
}  // namespace cepheus::fabric
