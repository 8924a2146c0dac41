// Feedback is overdue at two switches, one behind the other (docs/protocol.md, "Overdue feedback").
#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

// Hosts 0 and 1 at switch 0, 2 and 3 at switch 1; host 0 sends.
class OverdueFeedbackOverATrunk : public testing::Test {
 protected:
  void SetUp() override {
    net->data(0, 0);
    net->advance(1ms);
    for (const std::size_t receiver : {1, 2, 3}) net->ack(receiver, 0);
    net->clear();
  }
  std::unique_ptr<TestNetwork> net = make_pair_of_switches();
};

TEST_F(OverdueFeedbackOverATrunk, IsRequestedByTheSwitchBeforeALostPacket) {
  net->lose = [](std::size_t, std::size_t, const std::string& text) { return text == "data 1"; };
  net->data(0, 1);
  net->lose = nullptr;
  net->ack(1, 1);
  net->advance(6ms);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t1"}));
  EXPECT_EQ(net->count(Counter::kRequestedAgain, 0), 1u);
  EXPECT_EQ(net->count(Counter::kRequestedAgain, 1), 0u) << "it has not seen the packet";
}

TEST_F(OverdueFeedbackOverATrunk, IsRepeatedByTheSwitchThatHasIt) {
  net->lose = [](std::size_t from, std::size_t, const std::string& text) {
    return from == 1 && text == "ack 1";
  };
  net->data(0, 1);
  for (const std::size_t receiver : {1, 2, 3}) net->ack(receiver, 1);
  net->lose = nullptr;
  net->clear();
  net->advance(6ms);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 1 t1"}));
  net->data(0, 1);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
  EXPECT_EQ(net->inbox(2), Texts()) << "no receiver lacks anything";
}

// The trunk's round trips are longer than those of the hosts behind it.
TEST_F(OverdueFeedbackOverATrunk, IsRequestedByTheLowerSwitchFirst) {
  net->data(0, 1);
  net->advance(100us);
  net->ack(2, 1);
  net->advance(900us);
  net->ack({3, 1}, 1);
  net->data(0, 2);
  net->ack({1, 3}, 2);
  net->clear();
  net->advance(7ms);
  EXPECT_EQ(net->inbox(0), Texts({"rnr 2 t1"}));
  EXPECT_EQ(net->count(Counter::kRequestedAgain, 0), 0u) << "an RNR NAK came by the trunk";
  EXPECT_EQ(net->count(Counter::kRequestedAgain, 1), 1u);
}

// Host 3 lacks packet 2 when host 1, which lacks packet 1, makes the source go back.
TEST_F(OverdueFeedbackOverATrunk, IsForgottenAboveWhenItsPacketComesAgain) {
  net->data(0, 1);
  net->data(0, 2);
  net->ack(2, 2);
  net->ack(3, 1);
  net->advance(1ms);
  net->nak(1, 1);
  net->clear();
  net->advance(5ms);
  EXPECT_EQ(net->count(Counter::kRequestedAgain, 1), 1u);
  EXPECT_TRUE(net->view(0).held_nak) << "for host 1";
  net->data(0, 1);
  net->data(0, 2);
  net->ack(1, 2);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"})) << "packet 2 is on its way to host 3";
  net->ack(3, 2);
  EXPECT_EQ(net->inbox(0), Texts({"ack 2"}));
}

}  // namespace
}  // namespace cepheus::fabric
