#include "switch-emulator/engine/group/turn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "switch-emulator/engine/check.h"

namespace cepheus::fabric {
namespace {

// Four paths, all of them hosts; none has sent.
class TurnTest : public testing::Test {
 protected:
  TurnTest() {
    for (int i = 0; i < 4; ++i) add();
  }
  void add() {
    turn_.on_path_added();
    ++paths_;
  }
  void begin(PathNo source) {
    turn_.begin({source, true, Ipv4(10, 0, 0, 1), turn_.next(), turn_.next() + 100}, true);
  }
  void data(std::int64_t psn, bool ends_message = true) {
    turn_.on_data(kStart + psn, ends_message);
    turn_.check_consistent(paths_, 0);
  }
  void ack(PathNo path, std::int64_t psn) {
    turn_.set_acked(path, kStart + psn);
    turn_.check_consistent(paths_, 0);
  }
  void leave(PathNo path) {
    --paths_;
    turn_.on_path_removed(path, static_cast<PathNo>(paths_));
    turn_.check_consistent(paths_, 0);
  }

  static constexpr Psn kStart{0xFFFFF0};  // close below the wrap
  std::size_t paths_ = 0;
  Turn turn_{kStart};
};

TEST_F(TurnTest, IsFinishedUntilAHostSends) {
  EXPECT_TRUE(turn_.is_finished());
  EXPECT_EQ(turn_.source(), kNoPath);
  begin(1);
  EXPECT_TRUE(turn_.is_finished());
  data(0);
  EXPECT_FALSE(turn_.is_finished());
}

TEST_F(TurnTest, IsFinishedWhenAllHaveAMessagesEnd) {
  begin(0);
  data(0, false);
  for (PathNo path : {1, 2, 3}) ack(path, 0);
  EXPECT_FALSE(turn_.is_finished()) << "its message goes on";
  data(1);
  ack(1, 1);
  ack(3, 1);
  EXPECT_FALSE(turn_.is_finished());
  EXPECT_EQ(turn_.slowest(), 2);
  EXPECT_EQ(turn_.min(), kStart);
  ack(2, 1);
  EXPECT_TRUE(turn_.is_finished());
  data(1);  // a repeat changes nothing
  EXPECT_TRUE(turn_.is_finished());
}

TEST_F(TurnTest, IsFinishedWhenTheLastLaggingPathLeaves) {
  begin(0);
  data(0);
  ack(1, 0);
  ack(2, 0);
  leave(3);
  EXPECT_TRUE(turn_.is_finished());
}

TEST_F(TurnTest, IsAbandonedByItsSourceUnlessAllHaveIt) {
  begin(3);
  data(0);
  ack(0, 0);
  leave(3);
  EXPECT_FALSE(turn_.is_finished());
  EXPECT_EQ(turn_.source(), kNoPath);
  leave(1);
  EXPECT_FALSE(turn_.is_finished());
  leave(1);
  EXPECT_TRUE(turn_.is_finished());
}

TEST_F(TurnTest, CountsAFinishedTurnsPacketsAndMessagesForItsHost) {
  begin(2);
  data(0);
  data(1, false);
  data(2);
  for (PathNo path : {0, 1, 3}) ack(path, 2);
  EXPECT_EQ(turn_.acknowledge(), kStart + 2);
  EXPECT_EQ(turn_.messages(), 2u);
  begin(0);
  EXPECT_EQ(turn_.turns(2), 3u);
  EXPECT_EQ(turn_.messages(2), 2u);
  EXPECT_EQ(turn_.acked(2), kStart + 2) << "it has its own packets";
  EXPECT_EQ(turn_.previous(), 2);
  EXPECT_EQ(turn_.base(), kStart + 3);
  EXPECT_EQ(turn_.messages(), 0u);
}

// The simulator's jumps.
TEST_F(TurnTest, JumpsToTheStateAfterAsManyPackets) {
  constexpr std::int64_t kPackets = 300;
  for (const bool jumps : {false, true}) {
    turn_ = Turn(kStart);
    paths_ = 0;
    for (int i = 0; i < 4; ++i) add();
    EXPECT_FALSE(turn_.jump(1)) << "no host has sent";
    begin(2);
    data(0);
    EXPECT_FALSE(turn_.jump(1)) << "no path has it";
    for (PathNo path : {0, 1, 3}) ack(path, 0);
    EXPECT_FALSE(turn_.jump(1)) << "the source does not know it";
    turn_.acknowledge();
    for (std::int64_t i = 1; !jumps && i <= kPackets; ++i) {
      data(i);
      for (PathNo path : {0, 1, 3}) ack(path, i);
      turn_.acknowledge();
    }
    if (jumps) {
      ASSERT_TRUE(turn_.jump(kPackets));
    }
    turn_.check_consistent(paths_, 0);
    EXPECT_EQ(turn_.next(), kStart + kPackets + 1) << jumps;
    EXPECT_EQ(turn_.acknowledged(), turn_.sent());
    EXPECT_EQ(turn_.messages(), kPackets + 1);
    EXPECT_EQ(turn_.acked(0), turn_.sent());
    EXPECT_EQ(turn_.place_of(kStart + kPackets), kPackets);
    begin(0);
    EXPECT_EQ(turn_.turns(2), kPackets + 1) << jumps;
    EXPECT_EQ(turn_.messages(2), kPackets + 1);
  }
}

TEST_F(TurnTest, ReportsAPsnInTheNumberingOfItsSourcesPort) {
  begin(0);
  EXPECT_EQ(turn_.at_port(kStart + 20), kStart + 120);
  EXPECT_EQ(turn_.accept(kStart + 120, 100), kStart + 20);
}

TEST_F(TurnTest, KeepsItsSourceWhenPathsGetOtherNumbers) {
  begin(3);
  data(0);
  ack(0, 0);
  leave(1);  // path 3 becomes path 1
  EXPECT_EQ(turn_.source(), 1);
  ack(2, 0);
  EXPECT_TRUE(turn_.is_finished());
}

TEST_F(TurnTest, HoldsANakUntilAllHaveThePacketsBeforeIt) {
  begin(0);
  for (int psn = 0; psn < 4; ++psn) data(psn);
  ack(1, 3);
  ack(2, 1);
  const auto take_due_nak = [this] { return turn_.naks().take_due({}, turn_.min(), true); };
  turn_.naks().hold({kStart + 2});
  EXPECT_FALSE(take_due_nak());
  ack(3, 2);
  const auto nak = take_due_nak();
  ASSERT_TRUE(nak);
  EXPECT_EQ(nak->psn, kStart + 2);
  EXPECT_TRUE(turn_.naks().is_sent(kStart + 2));
  turn_.naks().on_data({}, kStart + 2);
  EXPECT_FALSE(turn_.naks().is_sent(kStart + 2)) << "it has come again";
  turn_.naks().hold({kStart + 2});
  EXPECT_FALSE(turn_.naks().held()) << "but a NAK for it was sent";
}

TEST_F(TurnTest, WaitsLongerEachTimeForAHandover) {
  begin(0);
  EXPECT_FALSE(turn_.awaits_handover());
  turn_.await_handover({});
  for (const int code : {20, 22, 24, 26, 26}) EXPECT_EQ(turn_.next_handover_timer(), code);
}

TEST_F(TurnTest, WaitsForAHandoverSinceTheFirstRepeatWhoseSourceWentOn) {
  using std::chrono::milliseconds;
  constexpr milliseconds kTimeLimit{200};
  turn_.await_handover({});
  EXPECT_FALSE(turn_.is_handover_past(Instant(kTimeLimit / 2), kTimeLimit));
  EXPECT_FALSE(turn_.is_handover_past(Instant(kTimeLimit), kTimeLimit));
  EXPECT_TRUE(turn_.is_handover_past(Instant(kTimeLimit + milliseconds(1)), kTimeLimit));
}

// Times are on a circle of 2^32 ms: these pass its end, after 49 days.
TEST_F(TurnTest, GoesOnWhereItsMillisecondsWrap) {
  using std::chrono::milliseconds;
  constexpr milliseconds kWrap{std::int64_t{1} << 32};
  constexpr milliseconds kGateAge{1600}, kTimeLimit{200};
  for (const milliseconds before : {milliseconds(1), milliseconds(50), milliseconds(99)}) {
    const Instant start{kWrap - before};
    Turn turn(kStart);
    constexpr auto kRest = kGateAge / Turn::kRepeatsInGateAge;
    EXPECT_TRUE(turn.goes_to_all(start, kGateAge, false));
    EXPECT_FALSE(turn.goes_to_all(start + kRest, kGateAge, true));
    EXPECT_TRUE(turn.goes_to_all(start + kRest + milliseconds(1), kGateAge, true));
    turn.await_handover(start);
    // A source that repeats every 50 ms, which is within half of the is limit.
    for (milliseconds passed{0}; passed <= kTimeLimit; passed += milliseconds(50)) {
      EXPECT_FALSE(turn.is_handover_past(start + passed, kTimeLimit)) << passed.count();
    }
    EXPECT_TRUE(turn.is_handover_past(start + kTimeLimit + milliseconds(1), kTimeLimit));
    // One that was silent for longer begins again.
    EXPECT_FALSE(turn.is_handover_past(start + kTimeLimit + milliseconds(102), kTimeLimit));
  }
}

// Errors that set_acked() would prevent.
TEST_F(TurnTest, AnAcknowledgementOfUnsentPacketsIsInconsistent) {
  begin(0);
  data(0);
  turn_.set_acked(1, kStart + 1);
  EXPECT_THROW(turn_.check_consistent(paths_, 0), Inconsistent);
}

TEST_F(TurnTest, OtherPathsThanTheTreesAreInconsistent) {
  EXPECT_THROW(turn_.check_consistent(paths_ + 1, 0), Inconsistent);
}

// In any order: the slowest path is always the first of the equally slow ones.
TEST_F(TurnTest, KnowsTheMinimumInAnyOrder) {
  for (int i = 4; i < 20; ++i) add();
  begin(5);
  std::uint32_t random = 1;
  const auto draw = [&](std::size_t below) {
    random = random * 1664525 + 1013904223;
    return (random >> 8) % below;
  };
  std::vector<std::int64_t> acked(paths_, -1);
  for (int step = 0; step < 3000; ++step) {
    if (step % 16 == 0) data(step / 16);
    const auto path = static_cast<PathNo>(draw(paths_));
    if (path == turn_.source()) continue;
    acked[path] += static_cast<std::int64_t>(
        draw(static_cast<std::size_t>(distance(kStart + acked[path], turn_.sent())) + 1));
    ack(path, acked[path]);  // check_consistent() compares
    PathNo first = 0;
    while (first == turn_.source() || turn_.acked(first) != turn_.min()) ++first;
    ASSERT_EQ(turn_.slowest(), first);
  }
}

}  // namespace
}  // namespace cepheus::fabric
