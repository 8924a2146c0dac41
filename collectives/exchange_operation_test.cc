#include "collectives/units/exchange_operation.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "collectives/fakes/caller.h"
#include "collectives/fakes/fake_mpi.h"

namespace cepheus::coll {
namespace {

// Member 0 of 5 sends to members 4, 3 and 1, and receives from members 1, 2 and 4.
TEST(ExchangeOperation, NamesTheMemberToWhichAMessageFailed) {
  constexpr int kMembers = 5, kDead = 3;
  fake::use_small_sizes();
  fake::Mpi mpi(kMembers);
  const std::vector<std::size_t> bytes(kMembers, 1);
  const std::byte own{1};
  std::deque<Team> teams;
  std::deque<ExchangeOperation> all;
  for (int i = 0; i < kMembers; ++i) {
    teams.push_back(Team::all(mpi.communicator(i), reserve_tags(mpi.communicator(i))));
    all.emplace_back().begin(teams.back(), bytes, &own);
  }
  (void)all[kDead].progress();  // sends its first message
  mpi.kill(kDead);
  Code rc = Code::kPending;
  for (int i = 0; i < 20; ++i) {
    for (const int member : {1, 2, 4}) (void)all[static_cast<std::size_t>(member)].progress();
    rc = all[0].progress();
    ASSERT_EQ(rc, Code::kPending);
    for (auto messages = mpi.deliverable(); !messages.empty(); messages = mpi.deliverable())
      mpi.deliver(messages.front());
  }
  mpi.fail_operations_with_the_dead();
  rc = all[0].progress();
  EXPECT_NE(rc, Code::kDone);
  EXPECT_NE(rc, Code::kPending);
  EXPECT_EQ(all[0].failed_member(), kDead);
  for (ExchangeOperation& each : all) each.finish();
}

}  // namespace
}  // namespace cepheus::coll
