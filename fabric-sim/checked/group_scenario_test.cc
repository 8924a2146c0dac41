#include "fabric-sim/checked/group_scenario.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "fabric-sim/checked/run_seed.h"

namespace cepheus::sim {
namespace {

TEST(GroupScenario, SameSeedGivesTheSameTrace) {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Outcome first = run_seed(seed);
    const Outcome again = run_seed(seed);
    EXPECT_EQ(first.trace_hash, again.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.events, again.events) << "seed " << seed;
    hashes.insert(first.trace_hash);
  }
  EXPECT_EQ(hashes.size(), 40u);
}

TEST(GroupScenario, PrintingTheTraceDoesNotChangeIt) {
  std::ostringstream text;
  EXPECT_EQ(run_seed(7, {}, &text).trace_hash, run_seed(7).trace_hash);
  EXPECT_NE(text.str().find("mrp register"), std::string::npos);
  EXPECT_NE(text.str().find("ack psn"), std::string::npos);
}

}  // namespace
}  // namespace cepheus::sim
