// Requests to a sender group's sender (docs/protocol.md, "Sender groups"): receivers send one NAK
// for a missing packet, and are silent until it comes.
#include <gtest/gtest.h>

#include "switch-emulator/engine/mcrdma/test_sender.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

class SenderRepeats : public testing::Test {
 protected:
  // All receivers answer packets after `round_trip`, one after the other; the sender has got the
  // acknowledgement.
  void measure(Duration round_trip, int first = 0, int last = 0) {
    for (int psn = first; psn <= last; ++psn) {
      group.data_to_acknowledge(psn);
      net->advance(round_trip);
      for (const std::size_t r : {1, 2, 3}) group.ack(r, psn);
    }
    net->clear();
  }
  void send(int first, int last) {
    for (int psn = first; psn < last; ++psn) group.data(psn);
    group.data_to_acknowledge(last);
  }

  // Ten packets, of which receiver 1 lacks 2; they are repeated.
  void send_and_repeat() {
    send(0, 9);
    group.nak(1, 2);
    EXPECT_EQ(group.at_sender(), Texts({"nak 0"}));
    send(0, 9);
  }

  void evict_receiver_1() {
    group.addressed_to = group.alias();
    group.set_receivers({2, 3});
    group.epoch = 2;
    group.install(false);
  }

  std::unique_ptr<TestNetwork> net = make_star(4, false);
  TestSender group{*net, 0, {1, 2, 3}};

  void SetUp() override { group.set_up(); }
};

TEST_F(SenderRepeats, AreRequestedAgainForTheSlowestToo) {
  send_and_repeat();
  group.ack({2, 3}, 9);
  EXPECT_EQ(group.at_sender(), Texts({"ack 1"}));
  group.nak(1, 5);  // the repeat of 5 was lost: it ignored all behind 2 before
  EXPECT_EQ(group.at_sender(), Texts({"nak 5"}));
  send(5, 9);
  group.ack(1, 9);
  EXPECT_EQ(group.at_sender(), Texts({"ack 9"}));
}

TEST_F(SenderRepeats, AreRequestedOnceForOneLoss) {
  send_and_repeat();
  group.ack({1, 3}, 9);
  group.nak(2, 5);  // from far away, sent before any repeat
  EXPECT_EQ(group.at_sender(), Texts());
}

TEST_F(SenderRepeats, AreRequestedForLaterPacketsInOrder) {
  send(0, 4);
  group.nak(1, 2);
  EXPECT_EQ(group.at_sender(), Texts({"nak 0"}));
  send(0, 9);
  group.nak(2, 7);  // sent for the first time, while another waits for 2
  group.ack(3, 9);
  EXPECT_EQ(group.at_sender(), Texts({"ack 1"}));
  group.ack(1, 9);
  EXPECT_EQ(group.at_sender(), Texts({"nak 7"}));
}

TEST_F(SenderRepeats, AreRequestedForEachOfSeveralReceiversInOrder) {
  send(0, 4);
  group.nak(1, 2);
  send(0, 19);
  net->clear();
  group.nak(3, 12);
  group.nak(2, 7);
  group.ack(1, 19);
  EXPECT_EQ(group.at_sender(), Texts({"nak 7"}));
  send(7, 19);  // with 12
  group.ack(2, 19);
  EXPECT_EQ(group.at_sender(), Texts({"ack 11"}));
  group.ack(3, 19);
  EXPECT_EQ(group.at_sender(), Texts({"ack 19"}));
}

TEST_F(SenderRepeats, AreRequestedAgainAfterSilence) {
  measure(1ms);
  send(1, 4);
  group.nak(1, 2);
  EXPECT_EQ(group.at_sender(), Texts({"nak 1"}));
  send(1, 4);
  group.ack({2, 3}, 4);
  net->clear();
  net->advance(33ms);  // 2 was lost again, for which receiver 1 sends no second NAK
  EXPECT_EQ(group.at_sender(), Texts());
  net->advance(2ms);
  EXPECT_EQ(group.at_sender(), Texts({"rnr 2 t1"}));
  EXPECT_EQ(net->count(Counter::kSenderRequestedAgain), 1u);
  send(2, 4);
  group.ack(1, 4);
  net->clear();
  net->advance(1s);
  EXPECT_EQ(group.at_sender(), Texts());  // all have all
}

TEST_F(SenderRepeats, AreRequestedFourTimesAndThenLeftToTheSendersTimer) {
  measure(1ms);
  send(1, 4);
  group.ack({1, 2}, 4);
  net->advance(10s);
  EXPECT_EQ(group.at_sender(), Texts({"rnr 1 t1", "rnr 1 t1", "rnr 1 t1", "rnr 1 t1"}));
  group.ack(3, 3);  // another packet, another time
  EXPECT_EQ(group.at_sender(), Texts({"ack 3"}));
  net->advance(10s);
  EXPECT_EQ(group.at_sender().size(), 4u);
}

TEST_F(SenderRepeats, AreNotRequestedWithoutAnOwedAnswer) {
  measure(1ms);
  for (int psn = 1; psn < 4; ++psn) group.data(psn);  // of a message that goes on later
  net->advance(1s);
  EXPECT_EQ(group.at_sender(), Texts());
  group.data_to_acknowledge(4);
  group.nak(1, 2);
  EXPECT_EQ(group.at_sender(), Texts({"nak 1"}));
  group.data(1);  // the sender is slow
  net->advance(1s);
  EXPECT_EQ(group.at_sender(), Texts());
}

TEST_F(SenderRepeats, AreNotRequestedDuringAReceiversRnrWait) {
  measure(1ms);
  send(1, 1);
  group.rnr(1, 1, 24);  // 40.96 ms
  group.ack(2, 1);
  EXPECT_EQ(group.at_sender(), Texts({"rnr 1 t24"}));
  net->advance(74ms);
  EXPECT_EQ(group.at_sender(), Texts());
  net->advance(2ms);
  EXPECT_EQ(group.at_sender(), Texts({"rnr 1 t1"}));
}

TEST_F(SenderRepeats, WaitLessWhenMoreRoundTripsAreKnown) {
  measure(1ms, 0, 31);
  send(32, 33);
  net->advance(2900us);
  EXPECT_EQ(group.at_sender(), Texts());
  net->advance(200us);
  EXPECT_EQ(group.at_sender(), Texts({"rnr 32 t1"}));
}

TEST_F(SenderRepeats, WaitForTheLongestRecentRoundTrip) {
  measure(10ms);
  measure(1ms, 1, 32);
  send(33, 34);
  net->advance(10ms);
  EXPECT_EQ(group.at_sender(), Texts());
  measure(1ms, 33, 200);
  send(201, 201);
  net->advance(4ms);
  EXPECT_EQ(group.at_sender(), Texts({"rnr 201 t1"}));
}

TEST_F(SenderRepeats, WaitAsLongAsTheFarthestReceiverTakes) {
  group.data_to_acknowledge(0);
  net->advance(10us);
  group.ack({1, 2}, 0);
  net->advance(5ms);
  group.ack(3, 0);
  net->clear();
  send(1, 4);
  group.ack({1, 2}, 4);
  net->advance(100ms);
  EXPECT_EQ(group.at_sender(), Texts());
  group.ack(3, 4);
  EXPECT_EQ(group.at_sender(), Texts({"ack 4"}));
}

TEST_F(SenderRepeats, AreRequestedForTheNotedPacketWhenTheSlowestReceiverIsEvicted) {
  send(0, 4);
  group.nak(1, 2);
  send(0, 9);
  group.nak(2, 7);  // sent for the first time, while another waits for 2
  group.ack(3, 9);
  net->clear();
  evict_receiver_1();
  EXPECT_EQ(group.at_sender(), Texts({"nak 7"}));
}

TEST_F(SenderRepeats, AreRequestedForOthersWhenTheSlowestReceiverIsEvicted) {
  measure(1ms);
  send(1, 4);
  group.ack(2, 3);
  group.ack(3, 4);
  net->advance(10s);  // the switch has asked four times for 1
  net->clear();
  evict_receiver_1();
  EXPECT_EQ(group.at_sender(), Texts({"ack 3"}));
  net->advance(1s);
  EXPECT_EQ(group.at_sender(), Texts({"rnr 4 t1", "rnr 4 t1", "rnr 4 t1", "rnr 4 t1"}));
}

TEST_F(SenderRepeats, AreNotRequestedAgainWithTheRuleOff) {
  net = make_star(4, false, [](SwitchConfig& c) { c.rules.sender_request_again = false; });
  TestSender plain(*net, 0, {1, 2, 3});
  plain.set_up();
  plain.data_to_acknowledge(0);
  net->advance(1ms);
  for (const std::size_t r : {1, 2, 3}) plain.ack(r, 0);
  net->clear();
  plain.data_to_acknowledge(1);
  net->advance(10s);
  EXPECT_EQ(plain.at_sender(), Texts());
}

}  // namespace
}  // namespace cepheus::fabric
