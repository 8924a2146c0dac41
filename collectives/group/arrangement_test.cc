#include "collectives/group/arrangement.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "collectives/core/parameters.h"
#include "collectives/fakes/allocations.h"
#include "collectives/fakes/fake_fabric.h"
#include "collectives/fakes/fake_job.h"
#include "collectives/fakes/fake_mpi.h"

namespace cepheus::coll {
namespace {

// Where all ranks know the places, rank 0 keeps none of the identities that it gathered.
TEST(Arrangement, HoldsNoIdentitiesOnceThePlacesAreKnown) {
  constexpr int kRanks = 128;
  fake::use_small_sizes();
  parameters().ranks_per_host = -1;  // a host is a NIC
  fake::Fabric fabric;
  fake::Mpi mpi(kRanks);
  std::vector<Team> teams;
  for (int rank = 0; rank < kRanks; ++rank) teams.push_back(Team::all(mpi.communicator(rank), -10));
  std::vector<std::unique_ptr<Arrangement>> all;
  for (const Team& team : teams) all.push_back(std::make_unique<Arrangement>(team));
  for (int done = 0; done < kRanks;) {
    done = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      fabric.caller = rank;
      done += all[static_cast<std::size_t>(rank)]->progress() ? 1 : 0;
    }
    for (auto next = mpi.deliverable(); !next.empty(); next = mpi.deliverable())
      mpi.deliver(next.front());
  }
  ASSERT_EQ(all.front()->placement().shape, Placement::Shape::kFlat);
  const std::size_t held = fake::held_bytes();
  all.front().reset();
  EXPECT_LT(held - fake::held_bytes(), kRanks * sizeof(Identity));
}

TEST(Arrangement, MulticastsNothingAmongRanksOfOtherSettings) {
  constexpr int kRanks = 3;
  fake::use_small_sizes();
  parameters().ranks_per_host = -1;
  fake::Fabric fabric;
  fake::Mpi mpi(kRanks);
  std::vector<Team> teams;
  for (int rank = 0; rank < kRanks; ++rank) teams.push_back(Team::all(mpi.communicator(rank), -10));
  std::vector<std::unique_ptr<Arrangement>> all;
  for (const Team& team : teams) all.push_back(std::make_unique<Arrangement>(team));
  const int usual = parameters().safeguard_samples;
  for (int done = 0; done < kRanks;) {
    done = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      fabric.caller = rank;
      parameters().safeguard_samples = rank == 1 ? usual + 1 : usual;
      done += all[static_cast<std::size_t>(rank)]->progress() ? 1 : 0;
    }
    for (auto next = mpi.deliverable(); !next.empty(); next = mpi.deliverable())
      mpi.deliver(next.front());
  }
  parameters().safeguard_samples = usual;
  for (const auto& each : all) {
    EXPECT_EQ(each->placement().shape, Placement::Shape::kNone);
    EXPECT_NE(each->placement().reason.find("rank 1 has other parameters"), std::string::npos);
  }
}

}  // namespace
}  // namespace cepheus::coll
