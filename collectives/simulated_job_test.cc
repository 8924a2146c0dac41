// Jobs under seeds: whatever breaks, is refused or is lost whenever, no rank is told success without
// its bytes, none waits for ever, and all agree on who takes the saved function.
#include "collectives/fakes/simulated_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "collectives/core/parameters.h"
#include "collectives/fakes/fake_job.h"

namespace cepheus::coll {
namespace {

using fake::Fault;
using fake::Plan;

class SimulatedJob : public testing::Test {
 protected:
  void SetUp() override {
    fake::use_small_sizes();
    if (const char* const first = std::getenv("CEPHEUS_SEED")) {
      const char* const count = std::getenv("CEPHEUS_SEEDS");
      first_ = std::stoul(first);
      last_ = first_ + (count != nullptr ? std::stoul(count) : 1) - 1;
    }
  }
  unsigned long first_ = 1, last_ = 700;
  std::map<char, int> how_;         // steps of all ranks
  std::map<Fault, int> come_back_;  // jobs
};

// CEPHEUS_SEED=N runs that one, with CEPHEUS_SEEDS=M all from N to N + M - 1; CEPHEUS_VERBOSE=2 shows
// the log.
TEST_F(SimulatedJob, EndsRightWhateverBreaksWhenever) {
  for (unsigned long seed = first_; seed <= last_; ++seed) {
    SCOPED_TRACE("CEPHEUS_SEED=" + std::to_string(seed));
    const auto fault = static_cast<Fault>(seed % static_cast<unsigned>(Fault::kCount));
    fake::SimulatedJob job(static_cast<unsigned>(seed), 2 + static_cast<int>(seed % 4), 60,
                           {fault});
    ASSERT_TRUE(job.run()) << "it does not end";
    job.check_paths();
    ASSERT_EQ(job.receives(), 0u);
    ASSERT_FALSE(HasFailure());
    if (job.has_come_back()) ++come_back_[fault];
    for (const auto& rank : job.ranks()) {
      for (const char how : rank->how) ++how_[how];
      if (job.is_healthy()) {
        ASSERT_EQ(rank->how, std::string(60, 'm'));
      }
    }
  }
  if (first_ == last_) return;
  for (const char how : {'m', 't', 's', 'e'}) EXPECT_GT(how_[how], 20) << how;
  for (const Fault fault : {Fault::kCut, Fault::kFailed, Fault::kRefused})
    EXPECT_GT(come_back_[fault], 20) << static_cast<int>(fault);
}

// To the end of a job that suffers what `plan` says.
void expect_right_end(unsigned long seed, std::size_t steps, const Plan& plan) {
  fake::SimulatedJob job(static_cast<unsigned>(seed), 2 + static_cast<int>(seed % 4), steps, plan);
  ASSERT_TRUE(job.run()) << "it does not end";
  job.check_paths();
  ASSERT_EQ(job.receives(), 0u);
}

// The next breach may come while ranks still agree on the last one, or try multicast again.
TEST_F(SimulatedJob, EndsRightThoughTheFabricBreaksSeveralTimes) {
  for (unsigned long seed = first_; seed <= last_ && !HasFailure(); ++seed) {
    SCOPED_TRACE("CEPHEUS_SEED=" + std::to_string(seed));
    const auto fault = static_cast<Fault>(seed % static_cast<unsigned>(Fault::kCount));
    expect_right_end(seed, 60, {fault, {}, 1 + static_cast<int>(seed % 3)});
  }
}

// What the others ask of the slow rank must not pile up faster than it looks.
TEST_F(SimulatedJob, EndsRightThoughARankTestsSlowly) {
  for (unsigned long seed = first_; seed <= last_ && !HasFailure(); ++seed) {
    SCOPED_TRACE("CEPHEUS_SEED=" + std::to_string(seed));
    const auto fault = static_cast<Fault>(seed % static_cast<unsigned>(Fault::kCount));
    expect_right_end(seed, 20, {fault, {}, static_cast<int>(seed % 2), true});
  }
}

// One short job after the other, each of which breaks one event later.
TEST_F(SimulatedJob, EndsRightBehindWhicheverEventTheFabricBreaks) {
  constexpr std::size_t kEvents = 1500, kSteps = 5;
  for (const Fault fault : {Fault::kCut, Fault::kFailed, Fault::kDeaf}) {
    for (std::size_t event = 0; event < kEvents && !HasFailure(); ++event) {
      SCOPED_TRACE("event " + std::to_string(event) + ", fault " +
                   std::to_string(static_cast<int>(fault)));
      expect_right_end(event % 7, kSteps, {fault, event});
    }
  }
}

// A job that requires multicast is aborted by one rank, whose message says that the fabric lost
// data. No call returns an error.
TEST_F(SimulatedJob, ThatRequiresMulticastIsAbortedOnceIfAUnitIsLost) {
  parameters().mode = static_cast<int>(Mode::kRequire);
  int aborted = 0;
  for (unsigned long seed = first_; seed <= last_; ++seed) {
    SCOPED_TRACE("CEPHEUS_SEED=" + std::to_string(seed));
    fake::SimulatedJob job(static_cast<unsigned>(seed), 2 + static_cast<int>(seed % 4), 60,
                           {Fault::kDeaf});
    ASSERT_TRUE(job.run()) << "it does not end";
    ASSERT_LE(job.aborts().size(), 1u);
    for (const fake::Aborted& abort : job.aborts()) {
      ++aborted;
      ASSERT_THAT(abort.reason, testing::HasSubstr("lost"));
    }
    for (const auto& rank : job.ranks())
      ASSERT_EQ(rank->how, std::string(rank->how.size(), 'm')) << "rank " << rank->rank;
  }
  EXPECT_TRUE(first_ == last_ || aborted > 20) << aborted;
}

}  // namespace
}  // namespace cepheus::coll
