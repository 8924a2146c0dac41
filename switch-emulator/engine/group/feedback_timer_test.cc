// A switch that gets no feedback on a packet that must be acknowledged requests it again
// (docs/protocol.md, "Overdue feedback").
#include "switch-emulator/engine/group/feedback_timer.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/group/test_overdue.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

TEST_F(OverdueFeedback, IsRequestedWhenTheLastPacketWasLost) {
  net->data(0, 1);
  net->ack({1, 2}, 1);
  net->advance(kWait - 1us);
  EXPECT_EQ(net->inbox(0), Texts());
  net->advance(1us);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t1"}));
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 1u);
  net->data(0, 1);
  net->ack(3, 1);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
  net->advance(10s);
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->count(Counter::kRequestedInVain), 0u);
}

TEST_F(OverdueFeedback, AcknowledgesTheMinimumAndNoMore) {
  net->message(0, 1, 4);
  net->ack({1, 2}, 4);
  net->ack(3, 2);
  net->clear();
  net->advance(kWait);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 3 t1"}));
}

TEST_F(OverdueFeedback, IsRequestedLessAndLessOftenAndFourTimesAtMost) {
  net->data(0, 1);
  for (const int times : {1, 2, 4, 8}) {
    net->advance(times * kWait - 1us);
    EXPECT_EQ(net->inbox(0), Texts());
    net->advance(1us);
    EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t1"}));
  }
  net->advance(10s);
  EXPECT_EQ(net->inbox(0), Texts());
}

TEST_F(OverdueFeedback, IsNotRequestedFromAReceiverThatAnsweredRnr) {
  net->data(0, 1);
  net->ack({1, 2}, 1);
  net->rnr(3, 1, 20);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t20"}));
  net->advance(kPause + kUnknownTrip - 1us);
  EXPECT_EQ(net->inbox(0), Texts());
  net->data(0, 1);
  net->ack(3, 1);
  net->data(0, 2);  // lost on its way to host 3, which has answered since
  net->ack({1, 2}, 2);
  net->clear();
  net->advance(kWait);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 2 t1"}));
  EXPECT_EQ(net->count(Counter::kRequestedUnready), 0u);
}

// The receiver sends the RNR NAK once. Only the source's time-out would follow.
TEST_F(OverdueFeedback, IsRequestedTwiceWhenAnRnrNakToTheSourceWasLost) {
  net->data(0, 1);
  net->ack({1, 2}, 1);
  net->rnr(3, 1, 20);
  net->clear();
  net->advance(kPause + kUnknownTrip);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t1"}));
  net->advance(10s);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t1"}));
  EXPECT_EQ(net->count(Counter::kRequestedUnready), 0u);
  net->data(0, 1);
  net->ack(3, 1);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
}

// The shorter wait of another receiver does not end it.
TEST_F(OverdueFeedback, IsNotRequestedBeforeTheLongestWaitIsOver) {
  net->data(0, 1);
  net->ack(1, 1);
  net->rnr(3, 1, 20);
  net->rnr(2, 1, 1);
  net->clear();
  net->advance(kPause + kUnknownTrip - 1us);
  EXPECT_EQ(net->inbox(0), Texts());
  net->advance(1us);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t1"}));
}

// The other switches do not know all waits of the source.
TEST(OverdueFeedbackOverTheSourcesTrunk, IsRequestedByTheSourcesOwnSwitchAfterAnRnr) {
  auto net = make_pair_of_switches();
  net->data(0, 0);
  for (const std::size_t host : {1, 3}) net->ack(host, 0);
  net->rnr(2, 0, 20);
  net->advance(1s);
  EXPECT_EQ(net->count(Counter::kRequestedAgain, 0), 2u);
  EXPECT_EQ(net->count(Counter::kRequestedAgain, 1), 0u);
}

// A last source that is not ready sends one NAK (host-sync).
TEST_F(OverdueFeedback, IsRequestedWhenTheWaitForTheLastSourceWasLost) {
  net =
      make_star(3, true, [](SwitchConfig& c) { c.rules.source_change = SourceChange::kHostSync; });
  net->data(0, 0);
  net->ack({1, 2}, 0);
  net->data(1, 1);
  net->ack(2, 1);
  net->nak(0, 0);
  EXPECT_EQ(net->inbox(1), Texts({"data 0", "rnr 1 t20"}));
  net->advance(kPause + kUnknownTrip);
  EXPECT_EQ(net->inbox(1), Texts({"rnr 1 t1"}));
  net->data(1, 1);
  EXPECT_EQ(net->inbox(1), Texts({"rnr 1 t22"}));
}

TEST_F(OverdueFeedback, IsRequestedWhenTheRepeatAfterAnRnrWasLost) {
  net->data(0, 1);
  net->ack({1, 2}, 1);
  net->rnr(3, 1, 20);
  net->advance(kPause);
  net->data(0, 1);  // lost on its way to host 3
  net->clear();
  net->advance(kWait);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t1"}));
  EXPECT_EQ(net->count(Counter::kRequestedUnready), 0u);
}

// As rdma_rxe may: a NAK follows the RNR NAK, and acknowledges nothing.
TEST_F(OverdueFeedback, IsNotRequestedFromAReceiverThatSendsANakAfterItsRnr) {
  net->data(0, 1);
  net->data(0, 2);
  net->ack({1, 2}, 2);
  net->rnr(3, 1, 20);
  net->nak(3, 1);
  net->clear();
  net->advance(kPause + kUnknownTrip - 1us);
  EXPECT_EQ(net->inbox(0), Texts());
}

TEST_F(OverdueFeedback, IsRequestedSoonAgainOnceARoundTripIsMeasured) {
  net->data(0, 1);
  net->ack({1, 2}, 1);
  for (const int times : {1, 2, 4}) net->advance(times * kWait);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 3u);
  net->data(0, 1);
  net->ack(3, 1);
  net->data(0, 2);
  for (const std::size_t host : {1, 2, 3}) net->ack(host, 2);
  net->data(0, 3);
  net->ack({1, 2}, 3);
  net->clear();
  net->advance(2 * kWait);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 3 t1"}));
}

// A repeated packet is not measured. So without losses that end, no measurement would end the
// back-off.
TEST_F(OverdueFeedback, IsRequestedSoonAgainOnceAnAcknowledgementMoves) {
  net->message(0, 1, 2);
  net->ack({1, 2}, 2);
  for (const int times : {1, 2, 4}) net->advance(times * kWait);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 3u);
  net->data(0, 1);
  net->ack(3, 1);
  net->clear();
  net->advance(kWait);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 2 t1"}));
}

TEST_F(OverdueFeedback, IsRequestedFromAReceiverThatAnsweredRnrWithTheRuleOff) {
  net = make_star(4, true, [](SwitchConfig& c) { c.rules.request_limit = false; });
  SetUp();
  net->data(0, 1);
  net->rnr(3, 1, 20);
  net->clear();
  net->advance(10 * kWait);
  EXPECT_EQ(net->inbox(0).size(), 10u) << "no wait doubles, and there is no limit";
  EXPECT_EQ(net->count(Counter::kRequestedUnready), 10u);
}

TEST_F(OverdueFeedback, IsNoLossIfItComesBeforeTheRepeat) {
  net->data(0, 1);
  net->ack({1, 2}, 1);
  net->advance(kWait);
  net->clear();
  net->ack(3, 1);
  EXPECT_EQ(net->count(Counter::kRequestedInVain), 1u);
  net->data(0, 2);  // now the switch knows host 3's round trip
  net->ack({1, 2}, 2);
  net->advance(9ms);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 1u);
}

TEST_F(OverdueFeedback, OfAMessageThatGoesOnIsNotRequested) {
  for (int psn = 1; psn < 4; ++psn) net->data(0, psn, false);
  net->advance(1s);
  EXPECT_EQ(net->inbox(0), Texts());
}

TEST_F(OverdueFeedback, OfAnotherTurnIsForgotten) {
  net->data(0, 1);
  for (const std::size_t receiver : {1, 2, 3}) net->ack(receiver, 1);
  net->data(1, 0);
  net->ack({0, 2, 3}, 2);
  net->clear();
  net->advance(10s);
  for (const std::size_t host : {0, 1, 2, 3}) EXPECT_EQ(net->inbox(host), Texts());
}

TEST(OverdueFeedbackOf, APathWithoutARoundTripIsLeftToTheSource) {
  auto net = make_star(3);
  net->data(0, 0);
  net->ack(1, 0);
  net->clear();
  net->advance(10s);
  EXPECT_EQ(net->inbox(0), Texts());
}

// The group of hosts 0 to 2 has just been activated: a round trip took a millisecond.
std::unique_ptr<TestNetwork> make_fresh_group(
    const std::vector<std::size_t>& confirming,
    const std::function<void(SwitchConfig&)>& change = {}) {
  auto net = make_star(3, false, change);
  net->register_group(0, net->epoch);
  for (const std::size_t receiver : {1, 2}) net->confirm(receiver, wire::MrpType::kRegister);
  net->control(0, wire::MrpType::kActivate, net->epoch);
  net->advance(1ms);
  for (const std::size_t receiver : confirming) net->confirm(receiver, wire::MrpType::kActivate);
  net->data(0, 0);
  net->ack(1, 0);
  net->clear();
  return net;
}

TEST(OverdueFeedbackOf, APathIsRequestedOnceBeforeItsFirstAcknowledgement) {
  auto net = make_fresh_group({1, 2});
  net->advance(6ms);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 0 t1"}));
  net->advance(10s);
  EXPECT_EQ(net->inbox(0), Texts());
}

TEST(OverdueFeedbackOf, APathIsRequestedMoreOftenWithTheRuleOff) {
  auto net =
      make_fresh_group({1, 2}, [](SwitchConfig& c) { c.rules.request_unknown_once = false; });
  net->advance(10s);
  EXPECT_EQ(net->inbox(0).size(), 4u);
}

TEST(OverdueFeedbackOf, AMemberThatNeverConfirmedIsNotRequested) {
  auto net = make_fresh_group({1});
  net->advance(10s);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 0u);
}

TEST(OverdueFeedbackOf, IsNeverRequestedWithTheRuleOff) {
  auto net = make_star(2, true, [](SwitchConfig& c) { c.rules.request_again = false; });
  net->data(0, 0);
  net->advance(1ms);
  net->ack(1, 0);
  net->data(0, 1);
  net->clear();
  net->advance(10s);
  EXPECT_EQ(net->inbox(0), Texts());
}

}  // namespace
}  // namespace cepheus::fabric
