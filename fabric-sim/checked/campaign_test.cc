#include "fabric-sim/checked/campaign.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "fabric-sim/checked/first_seed.h"

namespace cepheus::sim {
namespace {

Campaign without_a_rule(unsigned jobs) {
  Campaign campaign;
  campaign.first = 1;
  campaign.seeds = 60;
  campaign.jobs = jobs;
  campaign.most_failures = 100;
  net::set_rule(campaign.options.rules, "lost_aggregate_answer", false);
  return campaign;
}

TEST(Campaign, FindsTheSameOnOneThreadAndOnThree) {
  const CampaignResult one = run_campaign(without_a_rule(1));
  std::size_t reported = 0;
  const CampaignResult three = run_campaign(without_a_rule(3), [&](const Failure&) { ++reported; });
  EXPECT_EQ(one.seeds, 60u);
  EXPECT_EQ(three.seeds, 60u);
  EXPECT_EQ(one.sum.events, three.sum.events);
  ASSERT_FALSE(one.failures.empty());
  ASSERT_EQ(one.failures.size(), three.failures.size());
  EXPECT_EQ(reported, three.failures.size());
  for (std::size_t i = 0; i < one.failures.size(); ++i) {
    EXPECT_EQ(one.failures[i].seed, three.failures[i].seed);
    EXPECT_EQ(one.failures[i].finding.text, three.failures[i].finding.text);
  }
}

TEST(Campaign, EndsAtItsLimitOfFailures) {
  Campaign campaign = without_a_rule(1);
  campaign.most_failures = 1;
  const CampaignResult result = run_campaign(campaign);
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_EQ(result.seeds, result.failures[0].seed);
}

TEST(FirstSeed, ComesFromTheEnvironmentOrTheDate) {
  const char* const configured = std::getenv("CEPHEUS_FIRST_SEED");
  const std::string before = configured == nullptr ? "" : configured;
  ASSERT_EQ(setenv("CEPHEUS_FIRST_SEED", "1072230", 1), 0);
  EXPECT_EQ(first_seed(), 1072230u);
  ASSERT_EQ(unsetenv("CEPHEUS_FIRST_SEED"), 0);
  EXPECT_GT(first_seed(), 20'000'000'000u);
  if (configured != nullptr) setenv("CEPHEUS_FIRST_SEED", before.c_str(), 1);
}

}  // namespace
}  // namespace cepheus::sim
