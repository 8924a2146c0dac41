#include "collectives/group/host_discovery.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "collectives/core/parameters.h"
#include "collectives/fakes/allocations.h"
#include "collectives/fakes/fake_fabric.h"
#include "collectives/fakes/fake_job.h"
#include "collectives/fakes/fake_mpi.h"

namespace cepheus::coll {
namespace {

// A job of ranks that arrange themselves.
struct ArrangedJob {
  explicit ArrangedJob(int ranks) : mpi(ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      teams.push_back(Team::all(mpi.communicator(rank), -10));
    for (const Team& team : teams) all.push_back(std::make_unique<HostDiscovery>(team));
  }
  // `as`: called before a rank's progress.
  void finish(const std::function<void(int rank)>& as = [](int) {}) {
    for (std::size_t done = 0; done < all.size();) {
      done = 0;
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        fabric.caller = static_cast<int>(rank);
        as(fabric.caller);
        done += all[rank]->progress() ? 1 : 0;
      }
      for (auto next = mpi.deliverable(); !next.empty(); next = mpi.deliverable())
        mpi.deliver(next.front());
    }
  }

  fake::Fabric fabric;
  fake::Mpi mpi;
  std::vector<Team> teams;
  std::vector<std::unique_ptr<HostDiscovery>> all;
};

class HostDiscoveryTest : public testing::Test {
 protected:
  void SetUp() override {
    fake::use_small_sizes();
    parameters().ranks_per_host = -1;  // a host is a NIC
  }
};

// If all ranks know the places, rank 0 keeps none of the gathered identities.
TEST_F(HostDiscoveryTest, HoldsNoIdentitiesOnceThePlacesAreKnown) {
  constexpr int kRanks = 128;
  ArrangedJob job(kRanks);
  job.finish();
  ASSERT_EQ(job.all.front()->placement().shape, Placement::Shape::kFlat);
  const std::size_t held = fake::held_bytes();
  job.all.front().reset();
  EXPECT_LT(held - fake::held_bytes(), kRanks * sizeof(Identity));
}

TEST_F(HostDiscoveryTest, MulticastsNothingAmongRanksOfOtherSettings) {
  ArrangedJob job(3);
  const int usual = parameters().safeguard_samples;
  job.finish([&](int rank) { parameters().safeguard_samples = rank == 1 ? usual + 1 : usual; });
  parameters().safeguard_samples = usual;
  for (const auto& each : job.all) {
    EXPECT_EQ(each->placement().shape, Placement::Shape::kNone);
    EXPECT_NE(each->placement().reason.find("rank 1 has other parameters"), std::string::npos);
  }
}

}  // namespace
}  // namespace cepheus::coll
