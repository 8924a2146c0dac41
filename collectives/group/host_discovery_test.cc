#include "collectives/group/host_discovery.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
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

// Each rank of each communicator keeps it: a byte a rank is 16 KB with 16,384 ranks.
TEST_F(HostDiscoveryTest, HoldsNothingForEachRankOnceThePlacesAreKnown) {
  constexpr int kRanks = 512;
  ArrangedJob job(kRanks);
  job.finish();
  ASSERT_EQ(job.all.front()->placement().shape, Placement::Shape::kFlat);
  for (const int rank : {0, 100, kRanks - 1}) {
    const std::size_t held = fake::held_bytes();
    job.all[rank].reset();
    EXPECT_LT(held - fake::held_bytes(), sizeof(HostDiscovery) + kRanks) << "rank " << rank;
  }
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

// Rank 1 alone has the library loaded.
class GpuRuntime : public HostDiscoveryTest, public testing::WithParamInterface<int> {
 protected:
  ~GpuRuntime() override { unload(); }
  void load_as(int rank) {
    unload();
    if (rank == 1) library_ = dlopen(FAKE_GPU_RUNTIME, RTLD_NOW);
    ASSERT_EQ(library_ != nullptr, rank == 1);
  }

 private:
  void unload() {
    if (library_ != nullptr) dlclose(library_);
    library_ = nullptr;
  }
  void* library_ = nullptr;
};

TEST_P(GpuRuntime, OfARankLeavesBroadcastsToMpi) {
  parameters().ranks_per_host = GetParam();
  ArrangedJob job(3);
  for (const auto& each : job.all) EXPECT_FALSE(each->is_known_to_all());
  job.finish([this](int rank) { load_as(rank); });
  for (const auto& each : job.all) {
    EXPECT_EQ(each->placement().shape, Placement::Shape::kNone);
    EXPECT_THAT(each->placement().reason,
                testing::HasSubstr("rank 1 has loaded libamdhip64.so.6: Cepheus can't ask"));
  }
}

// A host is a NIC, or one rank.
INSTANTIATE_TEST_SUITE_P(Hosts, GpuRuntime, testing::Values(-1, 1));

// Ranks of given hosts, too, ask each other for such a library.
TEST_F(HostDiscoveryTest, PlacesRanksOfGivenHostsInOrder) {
  parameters().ranks_per_host = 2;
  ArrangedJob job(4);
  job.finish();
  for (const auto& each : job.all) {
    EXPECT_EQ(each->placement().shape, Placement::Shape::kHosts);
    EXPECT_THAT(each->placement().leaders(), testing::ElementsAre(0, 2));
  }
}

}  // namespace
}  // namespace cepheus::coll
