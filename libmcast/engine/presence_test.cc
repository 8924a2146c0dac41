#include "libmcast/engine/presence.h"

#include <gtest/gtest.h>

#include <vector>

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;
using Step = Presence::Step;

// A program that looks every 10 ms.
class Receiver {
 public:
  explicit Receiver(std::uint32_t place = 0) : presence_(5s, place, {}) {}

  // The times of its questions, from now on. Stops when it gives up.
  std::vector<wire::Duration> wait(wire::Duration time, bool answered, bool waiting = true) {
    std::vector<wire::Duration> requested;
    const wire::Instant began = now_;
    while (now_ - began < time && !gave_up_) {
      now_ += 10ms;
      const Step step = presence_.look(now_, received_, waiting);
      if (step == Step::kRequest) {
        requested.push_back(now_ - began);
        if (answered) presence_.on_answer();
      }
      gave_up_ = step == Step::kGiveUp;
    }
    return requested;
  }
  void receive() { ++received_; }
  void be_away(wire::Duration time) { now_ += time; }
  bool gave_up() const { return gave_up_; }
  wire::Instant now() const { return now_; }

 private:
  Presence presence_;
  wire::Instant now_{1h};
  std::uint64_t received_ = 0;
  bool gave_up_ = false;
};

TEST(Presence, IsNotRequestedWhileDataArrives) {
  Receiver receiver;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(receiver.wait(900ms, true).empty());
    receiver.receive();
  }
}

TEST(Presence, IsRequestedAfterASecondThenLessAndLessOften) {
  Receiver receiver;
  const auto requested = receiver.wait(40s, true);
  ASSERT_GE(requested.size(), 6u);
  EXPECT_EQ(requested[0], 1010ms) << "its first look came after 10 ms";
  EXPECT_EQ(requested[1] - requested[0], 2s);
  EXPECT_EQ(requested[2] - requested[1], 4s);
  EXPECT_EQ(requested[5] - requested[4], 8s);
  EXPECT_FALSE(receiver.gave_up());
}

TEST(Presence, IsGivenUpWhenNobodyAnswers) {
  Receiver receiver;
  const wire::Instant began = receiver.now();
  const auto requested = receiver.wait(60s, false);
  EXPECT_TRUE(receiver.gave_up());
  EXPECT_EQ(receiver.now() - began, 6010ms) << "5 s after the first question";
  EXPECT_GE(requested.size(), 9u) << "one question may be lost";
}

TEST(Presence, IsRequestedAtTheInstant) {
  Presence presence(5s, 0, {});
  wire::Instant now{1h};
  const auto look = [&] { return presence.look(now, 0, true); };
  EXPECT_EQ(look(), Step::kNone);
  for (int i = 0; i < 9; ++i) {
    now += 100ms;
    EXPECT_EQ(look(), Step::kNone);
  }
  now += 100ms - 1ns;
  EXPECT_EQ(look(), Step::kNone);
  now += 1ns;
  EXPECT_EQ(look(), Step::kRequest);
}

TEST(Presence, LastsOverAQuestionThatWasLost) {
  Receiver receiver;
  receiver.wait(4s, false);
  EXPECT_FALSE(receiver.gave_up());
  receiver.wait(60s, true);
  EXPECT_FALSE(receiver.gave_up());
}

TEST(Presence, IsShownByDataToo) {
  Receiver receiver;
  receiver.wait(5s, false);
  receiver.receive();
  receiver.wait(5s, false);
  EXPECT_FALSE(receiver.gave_up());
}

TEST(Presence, IsNotRequestedWithoutPostedReceives) {
  Receiver receiver;
  EXPECT_TRUE(receiver.wait(60s, false, false).empty());
  EXPECT_FALSE(receiver.gave_up());
}

TEST(Presence, DoesNotCountTimeThatNobodyLookedAt) {
  Receiver receiver;
  receiver.wait(1500ms, false);
  for (int i = 0; i < 5; ++i) {
    receiver.be_away(60s);  // computing, or stopped
    receiver.wait(200ms, false);
  }
  EXPECT_FALSE(receiver.gave_up());
}

// A leader of thousands of members does not receive all questions at once.
TEST(Presence, IsRequestedAtDifferentTimes) {
  Receiver first(0), second(8);
  EXPECT_EQ(first.wait(1100ms, true).at(0) - second.wait(1100ms, true).at(0), 120ms);
}

}  // namespace
}  // namespace cepheus::mcast
