// Replicas that return, and groups that fail with them.
#include "replica/engine/volume_by_hand.h"

namespace cepheus::replica {
namespace {

class Return : public Volume {
 protected:
  Return() {
    connect_all();
    lose_third();
  }
  void lose_third() { disconnect(2); }
  // Control connections live, or are restored at once. Returns the number of groups with the third
  // replica.
  unsigned pass(Duration time) {
    const std::size_t before = log.size();
    for (const Instant end = now + time; now < end;) {
      now += 50ms;
      for (unsigned r = 0; r < 3; ++r) {
        if (writer->is_connected(r)) {
          writer->on_answer(now, r, Answer{}, todo);
        } else {
          ++links[r];
          connect(r);
        }
      }
      tick();
    }
    return static_cast<unsigned>(std::count_if(log.begin() + static_cast<std::ptrdiff_t>(before),
                                               log.end(), [](const WriterAction& action) {
                                                 return action.kind == Kind::kForm &&
                                                        action.members.has(2);
                                               }));
  }
  void write_everywhere(std::uint64_t id, std::uint64_t block = 0) {
    submit(IoKind::kWrite, id, block);
    ASSERT_FALSE(all(Kind::kWrite).empty());
    ASSERT_EQ(all(Kind::kWrite).back().io.id, id);
    write_is_everywhere(all(Kind::kWrite).back());
  }
  void fail_group(bool all_answer = true) {
    writer->on_group_failed(now, all(Kind::kForm).back().generation, {}, all_answer, todo);
    run();
  }
};

// All members answer, so none is suspected.
TEST_F(Return, OfAReplicaThatTheFabricRefusesLeavesTheOthersTheirGroup) {
  refused = Members::only(2);
  EXPECT_EQ(pass(600ms), 1u);
  EXPECT_EQ(writer->group(), Members::of_bits(0b011));
  write_everywhere(1);
  EXPECT_EQ(all(Kind::kComplete).size(), 1u);
}

TEST_F(Return, IsTriedLessOftenEachTimeItFails) {
  refused = suspects = Members::only(2);
  EXPECT_EQ(pass(8s), 4u);  // after 0.5, 1, 2 and 4 s
  EXPECT_EQ(pass(10min), 12u) << "after 8, 16 and 32 s, then once a minute";
  refused = {};
  pass(61s);
  ASSERT_TRUE(writer->is_in_sync(2));
  lose_third();
  pass(600ms);
  EXPECT_TRUE(writer->is_in_sync(2)) << "it was in sync: that attempt counts as the first";
}

// A restarted switch must not restart a long copy.
TEST_F(Return, OfAReplicaThatIsCopiedContinuesUnlessGroupsFailAgain) {
  write_everywhere(1);
  pass(600ms);
  ASSERT_EQ(writer->lacking(2), 1u);
  fail_group();
  pass(100ms);
  EXPECT_EQ(writer->group(), Members::all(3));
  write_everywhere(2, 8);
  fail_group();
  pass(100ms);
  EXPECT_EQ(writer->group(), Members::all(3)) << "a write has completed since";
  pass(61s);
  fail_group();
  pass(100ms);
  EXPECT_EQ(writer->group(), Members::all(3)) << "the last failure was long ago";
  fail_group();
  pass(100ms);
  EXPECT_EQ(writer->group(), Members::of_bits(0b011));
}

// The writer's own port was down, or the whole fabric.
TEST_F(Return, OfAReplicaThatIsCopiedOutlastsGroupsThatFailWithoutAnyAnswer) {
  write_everywhere(1);
  pass(600ms);
  ASSERT_EQ(writer->lacking(2), 1u);
  for (int i = 0; i < 5; ++i) {
    fail_group(false);
    pass(100ms);
    EXPECT_EQ(writer->group(), Members::all(3));
    EXPECT_EQ(writer->lacking(2), 1u);
  }
}

TEST_F(Return, OfTwoReplicasIsOneAfterTheOther) {
  disconnect(1);
  refused = Members::only(2);
  pass(20s);
  EXPECT_TRUE(writer->is_in_sync(1));
  EXPECT_FALSE(writer->is_in_sync(2));
}

// Its timer has nothing to do meanwhile.
TEST_F(Return, OfTwoReplicasKeepsNoWriterBusyWhileTheFirstOnesGroupForms) {
  disconnect(1);
  forms = false;
  pass(600ms);
  ASSERT_EQ(writer->group(), Members{}) << "that with the first one is formed";
  ASSERT_FALSE(writer->is_in_sync(1) || writer->is_in_sync(2));
  now += 1ms;
  tick();
  EXPECT_GT(writer->deadline(), now);
}

TEST_F(Return, WaitsNoLongerForConnectionsThatFailMeanwhile) {
  refused = Members::only(2);
  EXPECT_EQ(pass(8s), 4u);
  refused = {};
  for (int i = 0; i < 20; ++i) {
    lose_third();
    pass(500ms);
  }
  EXPECT_TRUE(writer->is_in_sync(2)) << "8 s after the last return that failed";
}

}  // namespace
}  // namespace cepheus::replica
