// What is watched in a simulated world must be seen if it is wrong: each fault is planted by hand here.
#include "replica/sim/world.h"

#include <gtest/gtest.h>

namespace cepheus::replica::sim {
namespace {

using namespace std::chrono_literals;

class WorldTest : public testing::Test {
 protected:
  static VolumePlan plan(unsigned operations) {
    VolumePlan plan;
    plan.operations = operations;
    plan.fua_share = 1;
    return plan;
  }
  std::string failure(World& world) { return world.run().failure.value_or("none"); }

  // Every replica tells the engine that its disk is a new one.
  static void forge_loss(World& world, Writer& engine) {
    WriterActions unread;
    for (unsigned r = 0; r < world.plan.replicas; ++r) {
      Answer answer;
      answer.ask = Ask::kPromise;
      answer.promised = engine.epoch();
      answer.config = world.replicas[r]->record().config;
      answer.loss = Loss::kAll;
      engine.on_answer(world.events.now(), r, answer, unread);
    }
  }
  // ... as soon as the writer asks all of them.
  static void forge_loss_soon(World& world) {
    Writer& engine = world.writers.back()->engine();
    forge_loss(world, engine);
    if (engine.has_ended() || engine.phase() == Writer::Phase::kServing) return;
    world.events.in(1us, [&world] { forge_loss_soon(world); });
  }
};

TEST_F(WorldTest, HoldsWithoutFaults) {
  World world(plan(200), {}, 1, false);
  EXPECT_EQ(failure(world), "none");
}

// After the last reads, and before the last flush.
TEST_F(WorldTest, FindsReplicasThatAreAlikeAndWrong) {
  World world(plan(200), {}, 1, false);
  world.events.at(Instant{360ms}, [&] {
    for (const auto& replica : world.replicas) replica->set(3, 0);
  });
  const std::string found = failure(world);
  EXPECT_EQ(found.rfind("in the end block 3 holds write 0 of writer 0, though write ", 0), 0u)
      << found;
}

TEST_F(WorldTest, FindsAWriterThatEndsThoughThereIsNoOther) {
  World world(plan(200), {}, 1, false);
  world.events.at(Instant{50ms}, [&] {
    Answer refusal;
    refusal.verdict = Verdict::kRefused;
    refusal.promised = {1000, 1};
    WriterActions unread;
    world.writers[0]->engine().on_answer(world.events.now(), 0, refusal, unread);
    world.writers[0]->fail_group();  // its host looks at what has become of it
  });
  EXPECT_EQ(failure(world), "a writer ended, though there is no other");
}

TEST_F(WorldTest, FindsANewWriterThatEndsThoughNothingIsLost) {
  World world(plan(200), {}, 1, false);
  world.events.at(Instant{50ms}, [&] {
    world.add_writer();
    forge_loss_soon(world);
  });
  EXPECT_EQ(failure(world), "a writer ended, though nothing was lost");
}

// It served again after a loss, and said so that nothing was lost.
TEST_F(WorldTest, FindsAWriterThatEndsLongAfterALossThatTookNothing) {
  World world(plan(0), {}, 1, false);
  world.events.at(Instant{30ms}, [&] {
    for (const auto& replica : world.replicas) replica->crash(true);
  });
  world.events.at(Instant{150ms}, [&] {
    Writer& engine = world.writers[0]->engine();
    ASSERT_EQ(engine.phase(), Writer::Phase::kServing);
    ASSERT_GT(world.history.last_loss(), Instant{});
    WriterActions unread;
    for (unsigned r = 0; r < world.plan.replicas; ++r) {
      engine.on_disconnected(world.events.now(), r, unread);
    }
    for (unsigned r = 0; r < world.plan.replicas; ++r) {
      engine.on_connected(world.events.now(), r, unread);
    }
    forge_loss(world, engine);
    ASSERT_EQ(engine.phase(), Writer::Phase::kFailed);
  });
  EXPECT_EQ(failure(world), "a writer ended, though nothing was lost");
}

}  // namespace
}  // namespace cepheus::replica::sim
