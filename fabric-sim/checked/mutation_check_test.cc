#include "fabric-sim/checked/mutation_check.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "fabric-sim/checked/campaign.h"
#include "net/rules.h"

namespace cepheus::sim {
namespace {

TEST(MutationCheck, SomeSeedFailsWithoutEachSafetyRule) {
  const std::uint64_t first = first_seed();
  std::printf("rules are switched off for seeds from %llu\n",
              static_cast<unsigned long long>(first));
  const auto results = check_mutations(first, 20'000);  // ten times what the rarest needs
  std::size_t rules = 0;
  while (net::kSafetyRules[rules] != nullptr) ++rules;
  ASSERT_EQ(results.size(), rules + std::size(kHostSyncRules) + std::size(kPerRequestRules) +
                                std::size(kSenderGroupRules));
  for (const MutationResult& result : results) {
    EXPECT_TRUE(result.caught) << result.rule << " is off and no seed fails";
  }
  std::printf("%s", to_table(results).c_str());
}

TEST(MutationCheck, WritesOneRowForEachRule) {
  MutationResult caught;
  caught.rule = "gate";
  caught.caught = true;
  caught.seed = 17;
  caught.finding = {Invariant::kCompletion, {}, "too early"};
  MutationResult missed;
  missed.rule = "other";
  MutationResult by_hosts = missed;
  by_hosts.host_sync = true;
  MutationResult by_writes = missed;
  by_writes.writes = true;
  MutationResult by_announcements = missed;
  by_announcements.per_request = true;
  MutationResult by_queues = missed;
  by_queues.congestion = true;
  MutationResult by_senders = missed;
  by_senders.sender_groups = true;
  EXPECT_EQ(
      to_table({caught, missed, by_hosts, by_writes, by_announcements, by_queues, by_senders}),
      "| rule switched off | first failing seed | invariant | how it failed |\n"
      "|---|---|---|---|\n"
      "| `gate` | 17 | completion | too early |\n"
      "| `other` | none | | not caught |\n"
      "| `other`, PSN synchronisation | none | | not caught |\n"
      "| `other`, with WRITEs | none | | not caught |\n"
      "| `other`, announced WRITEs | none | | not caught |\n"
      "| `other`, lossless links | none | | not caught |\n"
      "| `other`, sender groups | none | | not caught |\n");
}

}  // namespace
}  // namespace cepheus::sim
