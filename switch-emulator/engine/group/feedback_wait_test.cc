// How long a switch waits for feedback before it requests it: round trips of receivers and of the
// source, queues, pauses.
#include <gtest/gtest.h>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group/test_overdue.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

// The source's round trip is 5 ms, longer than the receivers'. Its deviation counts as half of it.
TEST_F(OverdueFeedback, WaitsForTheSourcesRepeat) {
  net->message(0, 1, 2);
  net->nak(3, 1);
  net->advance(5ms);
  net->data(0, 1);
  net->data(0, 2);
  for (const std::size_t receiver : {1, 2, 3}) net->ack(receiver, 2);
  net->clear();
  net->message(0, 3, 4);
  net->ack({1, 2}, 4);
  net->nak(3, 3);
  net->advance(19ms);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 0u) << "the repeat is on its way";
  net->advance(2ms);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 1u) << "the repeat was lost";
}

// As many packets as come in 1 ms: a link of a tenth of the rate needs 10 ms for them.
void send_burst(TestNetwork& net, std::int64_t first, Duration takes = 1ms) {
  for (std::int64_t i = 0; i < 10; ++i) {
    net.data(0, first + i, i == 9);
    if (i < 9) net.advance(takes / 9);
  }
}

TEST_F(OverdueFeedback, WaitsForAQueueThatEmptiesSlowly) {
  send_burst(*net, 1);
  net->advance(10ms);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 0u);
  net->ack({1, 2, 3}, 5);
  net->advance(kWait);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 1u) << "the receivers have answered now";
}

// Its queue is no longer than it was then, so its round trips contain it.
TEST_F(OverdueFeedback, WaitsForNoQueueAfterABurstThatAllHaveAnswered) {
  send_burst(*net, 1);
  net->ack({1, 2, 3}, 10);
  send_burst(*net, 11);
  net->ack({1, 2}, 20);
  net->clear();
  net->advance(kWait);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 11 t1"}));
  net->message(0, 11, 20);
  net->ack(3, 20);
  send_burst(*net, 21);
  send_burst(*net, 31);
  net->clear();
  net->advance(10ms);
  EXPECT_EQ(net->inbox(0), Texts()) << "a longer burst than before";
}

// A slow source's packets had no queue.
TEST_F(OverdueFeedback, WaitsForAQueueAfterABurstThatCameSlower) {
  send_burst(*net, 1, 10ms);
  net->ack({1, 2, 3}, 10);
  send_burst(*net, 11, 1ms);
  net->clear();
  net->advance(10ms);
  EXPECT_EQ(net->inbox(0), Texts());
}

TEST_F(OverdueFeedback, WaitsForNoQueueOfAReceiverThatHasSentANak) {
  send_burst(*net, 1);
  net->ack({1, 2}, 10);
  net->nak(3, 1);
  net->data(0, 1);  // lost again
  net->clear();
  net->advance(kWait);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t1"}));
}

// The source has paused between two messages. No queue needs 16 times that time.
TEST_F(OverdueFeedback, WaitsForAQueueForALimitedTime) {
  net->data(0, 1);
  net->ack({1, 2}, 1);
  net->advance(5ms);
  net->data(0, 2);
  net->ack({1, 2}, 2);
  net->advance(FeedbackTimer::kLongestSilence);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 1u);
}

// The source's first NAK was lost, and its time-out of 67 ms is no round trip.
TEST_F(OverdueFeedback, WaitsForTheSourceForALimitedTime) {
  net = make_star(4);
  net->message(0, 0, 1);
  net->ack({1, 2}, 1);
  net->nak(3, 0);
  net->advance(67ms);
  net->message(0, 0, 1);
  net->ack(3, 1);
  net->data(0, 2);
  net->advance(1ms);
  for (const std::size_t receiver : {1, 2, 3}) net->ack(receiver, 2);
  net->data(0, 3);
  net->ack({1, 2}, 3);
  net->advance(FeedbackTimer::kLongestSilence);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 1u);
}

// From REGISTER's last CONFIRM to ACTIVATE it took 5 ms, until a NAK shows more.
TEST(OverdueFeedbackOf, WaitsForTheSourceAsLongAsRegistrationHasTaken) {
  auto net = make_star(2, false);
  net->register_group(0, net->epoch);
  net->confirm(1, wire::MrpType::kRegister);
  net->advance(5ms);
  net->control(0, wire::MrpType::kActivate, net->epoch);
  net->data(0, 0);
  net->advance(1ms);
  net->ack(1, 0);
  net->data(0, 1);
  net->advance(19ms);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 0u);
  net->advance(1ms);
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 1u);
}

// Each NAK is followed by a request, so Karn's algorithm measures nothing.
TEST_F(OverdueFeedback, LearnsALongRoundTripOfTheSourceFromARepeatAfterARequest) {
  for (const int psn : {1, 3, 5}) {
    net->message(0, psn, psn + 1);
    net->ack({1, 2}, psn + 1);
    net->nak(3, psn);
    net->advance(8ms);
    net->message(0, psn, psn + 1);
    net->ack(3, psn + 1);
    EXPECT_EQ(net->count(Counter::kRequestedAgain), 1u);
  }
}

// Of NAKs that the source answers after `takes`; returns the requests for each.
std::vector<std::uint64_t> request_counts(TestNetwork& net, std::int64_t first, Duration takes) {
  std::vector<std::uint64_t> counts;
  for (std::int64_t psn = first; psn < first + 10; psn += 2) {
    const std::uint64_t before = net.count(Counter::kRequestedAgain);
    net.message(0, psn, psn + 1);
    net.ack({1, 2}, psn + 1);
    net.nak(3, psn);
    net.advance(takes);
    net.message(0, psn, psn + 1);
    net.ack(3, psn + 1);
    counts.push_back(net.count(Counter::kRequestedAgain) - before);
  }
  return counts;
}

// As if a near source and a far one took turns behind a trunk; or if a repeat that another switch
// has requested came just after this switch's NAK.
TEST_F(OverdueFeedback, LearnsThatTheSourceIsFartherThanWasMeasured) {
  using Counts = std::vector<std::uint64_t>;
  EXPECT_EQ(request_counts(*net, 1, 1ms), Counts({0, 0, 0, 0, 0}));
  EXPECT_EQ(request_counts(*net, 11, 20ms), Counts({2, 0, 0, 0, 0}));
}

// Hosts 1 and 2 answer after 1 ms, host 3 after 100 ms.
class OverdueFeedbackOfNearAndFar : public testing::Test {
 protected:
  void SetUp() override {
    for (const int psn : {0, 1}) {
      net->data(0, psn);
      net->advance(1ms);
      for (const std::size_t receiver : {1, 2}) net->ack(receiver, psn);
      net->advance(99ms);
      net->ack(3, psn);
    }
    net->clear();
    ASSERT_EQ(net->count(Counter::kRequestedAgain), 0u);
  }
  std::unique_ptr<TestNetwork> net = make_star(4);
};

TEST_F(OverdueFeedbackOfNearAndFar, IsRequestedFromTheNearBeforeTheFarWait) {
  net->data(0, 2);
  net->advance(1ms);
  net->ack(2, 2);
  net->advance(10ms);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 2 t1"}));
}

TEST_F(OverdueFeedbackOfNearAndFar, IsRequestedInTheNextTurnBeforeTheFarWait) {
  net->data(1, 0);
  net->advance(1ms);
  net->ack({0, 3}, 2);
  net->advance(10ms);
  EXPECT_EQ(net->inbox(1), Texts({"rnr 0 t1"}));
}

TEST_F(OverdueFeedback, WaitsForTheFarthestOfEquallySlowPaths) {
  net->advance(1s);
  net->data(0, 1);
  net->ack({1, 2}, 1);
  net->advance(5ms);  // host 3 takes longer than ever, but not longer than allowed
  net->ack(3, 1);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
  EXPECT_EQ(net->count(Counter::kRequestedAgain), 0u);
}

TEST(OverdueFeedbackOf, HasNoFloorOfItsOwn) {
  auto net = make_star(2, true, [](SwitchConfig& c) { c.feedback_wait = {}; });
  for (int psn = 0; psn < 50; ++psn) {
    net->data(0, psn);
    net->advance(1ms);
    net->ack(1, psn);
  }
  net->data(0, 50);
  net->clear();
  net->advance(2ms + 1us);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 50 t1"}));
}

// Frames wait in this switch, or at another one.
TEST_F(OverdueFeedback, IsRequestedLateOverALosslessLinkAndNotWhileItIsPaused) {
  net::PauseState pause;
  net->sw(0).watch(net->port_of(3), pause);
  net->data(0, 1);
  net->ack({1, 2}, 1);
  pause.pause(net->now(), net->now() + 20ms);
  net->clear();
  net->advance(20ms + 2ms + FeedbackTimer::kLongestSilence - 1us);
  EXPECT_EQ(net->inbox(0), Texts());
  net->advance(1us);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t1"}));
}

// A full ring pauses its link, and nobody knows for how long. The source's round trip is known.
TEST_F(OverdueFeedback, IsNotRequestedDuringAPauseWithoutAKnownEnd) {
  net->message(0, 1, 2);
  net->nak(3, 1);
  net->advance(5ms);
  net->message(0, 1, 2);
  for (const std::size_t receiver : {1, 2, 3}) net->ack(receiver, 2);
  net::PauseState pause;
  net->sw(0).watch(net->port_of(3), pause);
  pause.pause(net->now(), wire::kNever);
  net->data(0, 3);
  net->ack({1, 2}, 3);
  net->clear();
  net->advance(500ms);
  EXPECT_EQ(net->inbox(0), Texts());
  pause.pause(net->now(), net->now());
  net->advance(Call::kPauseAhead + FeedbackTimer::kLongestSilence);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 3 t1"}));
}

}  // namespace
}  // namespace cepheus::fabric
