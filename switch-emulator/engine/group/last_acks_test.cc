// The last acknowledgement of a turn is sent again, because no packet follows that would bring the
// next one (docs/protocol.md, "Feedback").
#include "switch-emulator/engine/group/last_acks.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

class LastAckOf : public testing::Test {
 protected:
  std::unique_ptr<TestNetwork> net = make_star(2, true, [](SwitchConfig& c) {
    c.rules.last_ack_again = true;
    c.rules.request_again = false;
  });
  std::uint32_t last_msn(std::size_t host) const {
    const auto frame = Frame::from_bytes(net->frames(host).back());
    return wire::RoceHeaders::parse(*frame)->aeth.msn;
  }
};

TEST_F(LastAckOf, ATurnThatRestsIsRepeatedTwice) {
  net->data(0, 0);
  net->ack(1, 0);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
  net->advance(1ms - 1us);
  EXPECT_EQ(net->inbox(0), Texts());
  net->advance(1us);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
  net->advance(9ms);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
  net->advance(10s);
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->count(Counter::kLastAckRepeated), 2u);
  net->data(0, 1);
  net->ack(1, 1);
  net->clear();
  net->advance(1ms);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
}

// The switch stood still for longer than both waits.
TEST(LastAcks, ThatAreRepeatedLateAreRepeatedAgainLater) {
  const Instant sent{1s};
  LastAcks last;
  last.on_sent_to_host(sent, {2, Psn(7)});
  EXPECT_EQ(last.next(), sent + 1ms);
  EXPECT_EQ(last.take_due(sent + 3s)->psn, Psn(7));
  EXPECT_EQ(last.next(), sent + 3s + 9ms);
  EXPECT_EQ(last.take_due(sent + 6s)->path, 2);
  EXPECT_EQ(last.next(), wire::kNever);
}

TEST(LastAcks, OfASwitchItselfAreNotRepeatedToTheNextSwitch) {
  const Instant sent{1s};
  LastAcks last;
  last.on_sent_to_switch(sent, {2, Psn(7)}, 0us);
  EXPECT_EQ(last.next(), wire::kNever);
  last.on_sent_to_switch(sent, {2, Psn(7)}, 20us);
  EXPECT_EQ(last.next(), sent + 20us);
}

TEST(LastAcks, AreThoseOfTheLastFewSources) {
  const Instant sent{1s};
  LastAcks last;
  const auto taken = [&] {
    std::vector<PathNo> paths;
    while (const auto ack = last.take_due(sent + 2ms)) paths.push_back(ack->path);
    std::ranges::sort(paths);
    return paths;
  };
  for (PathNo path = 0; path < 5; ++path) last.on_sent_to_host(sent + path * 1us, {path, Psn(0)});
  last.on_sent_to_host(sent + 9us, {3, Psn(1)});
  last.on_path_removed(2, 4);
  EXPECT_EQ(taken(), (std::vector<PathNo>{1, 2, 3}));
}

// The source's window is full, and it can't send the next packet without the ACK.
TEST_F(LastAckOf, AMessageThatGoesOnIsRepeated) {
  net->data(0, 0, false);
  net->ack(1, 0);
  net->clear();
  net->advance(1ms);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
}

TEST_F(LastAckOf, ATurnThatGoesOnIsNotRepeated) {
  net->data(0, 0);
  net->ack(1, 0);
  net->data(0, 1);
  net->clear();
  net->advance(1s);
  EXPECT_EQ(net->inbox(0), Texts()) << "a packet is not acknowledged";
}

// The next source has begun before the first repeat.
TEST_F(LastAckOf, ATurnThatHasEndedIsRepeatedToo) {
  net->message(0, 0, 1);
  net->ack(1, 1);
  const std::uint32_t msn = last_msn(0);
  net->data(1, 0);
  net->ack(0, 0);
  net->clear();
  net->advance(1ms);
  EXPECT_EQ(last_msn(0), msn);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
  EXPECT_EQ(net->inbox(1), Texts({"ack 0"}));
  net->data(0, 2);
  net->clear();
  net->advance(1s);
  EXPECT_EQ(net->inbox(0), Texts()) << "it has begun another turn";
}

// The ACK opens the gate for the next source at once.
TEST_F(LastAckOf, ATurnIsRepeatedThoughTheNextSourceHasWaited) {
  net->data(0, 0);
  net->data(1, 0);
  net->ack(1, 0);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0", "data 0"}));
  net->advance(1ms);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
}

TEST(LastAcks, ToASwitchAreRepeatedOnceAfterAsLongAsTheyTook) {
  const Instant sent{1s};
  LastAcks last;
  last.on_sent_to_switch(sent, {1, Psn(7), {TestNetwork::ip(3), Psn(5)}}, 20us);
  last.on_sent_to_host(sent + 1us, {2, Psn(9)});
  EXPECT_EQ(last.next(), sent + 20us);
  EXPECT_FALSE(last.take_due(sent + 19us));
  const auto again = last.take_due(sent + 20us);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->path, 1);
  EXPECT_EQ(again->psn, Psn(7));
  EXPECT_EQ(again->turn, (TurnName{TestNetwork::ip(3), Psn(5)}));
  EXPECT_FALSE(last.take_due(sent + 20us));
  EXPECT_EQ(last.next(), sent + 1us + 1ms);
}

// Hosts 2 and 3, behind the second switch, answer host 0 after 20 us.
class LastAckOverATrunk : public testing::Test {
 protected:
  void SetUp() override {
    net->lose = [this](std::size_t from, std::size_t, const std::string& text) {
      if (from == 1) trunk.push_back(text);
      return from == 1 && trunk.size() <= lost;
    };
  }
  void send() {
    net->data(0, 0);
    net->ack(1, 0);
    net->advance(20us);
    net->ack({2, 3}, 0);
  }
  std::unique_ptr<TestNetwork> net =
      make_pair_of_switches(true, [](SwitchConfig& c) { c.rules.last_ack_again = true; });
  Texts trunk;           // frames of the second switch
  std::size_t lost = 0;  // of them, the first ones
};

TEST_F(LastAckOverATrunk, IsRepeatedToTheSourceTwice) {
  send();
  EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
  net->advance(1s);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0", "ack 0"}));
  EXPECT_EQ(net->count(Counter::kLastAckRepeated, 0), 2u);
}

TEST_F(LastAckOverATrunk, IsRepeatedToTheNextSwitchOnceAfterAsLongAsItTook) {
  send();
  net->advance(19us);
  EXPECT_EQ(trunk, Texts({"ack 0"}));
  net->advance(1us);
  EXPECT_EQ(trunk, Texts({"ack 0", "ack 0"}));
  net->advance(1s);
  EXPECT_EQ(trunk.size(), 2u);
  EXPECT_EQ(net->count(Counter::kLastAckRepeated, 1), 1u);
  EXPECT_EQ(net->count(Counter::kDropFeedbackStale, 0), 1u) << "the first one has arrived";
}

// The source repeats nothing.
TEST_F(LastAckOverATrunk, ComesBeforeTheNextSwitchRequestsThePacket) {
  lost = 1;
  send();
  EXPECT_EQ(net->inbox(0), Texts());
  net->advance(20us);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
  net->advance(10s);
  EXPECT_EQ(net->count(Counter::kRequestedAgain, 0), 0u);
}

// Host 2 has all of the first turn, and its own switch admits it.
TEST_F(LastAckOverATrunk, OpensTheGateForTheNextTurnUnderTheNameOfTheLast) {
  lost = 1;
  send();
  net->data(2, 0);
  EXPECT_EQ(net->inbox(3), Texts({"data 0", "data 1"}));
  EXPECT_EQ(net->inbox(1), Texts({"data 0"})) << "held at the first switch";
  net->advance(20us);
  EXPECT_EQ(net->inbox(1), Texts({"data 1"}));
  EXPECT_EQ(net->inbox(0), Texts({"ack 0", "data 0"}));
}

TEST_F(LastAckOverATrunk, IsNotRepeatedIfTheTurnHasGoneOn) {
  send();
  net->data(0, 1);
  net->advance(1s);
  EXPECT_EQ(net->count(Counter::kLastAckRepeated, 1), 0u);
}

}  // namespace
}  // namespace cepheus::fabric
