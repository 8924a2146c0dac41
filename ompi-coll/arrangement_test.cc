#include "ompi-coll/arrangement.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "ompi-coll/fake_fabric.h"
#include "ompi-coll/fake_job.h"
#include "ompi-coll/fake_open_mpi.h"
#include "ompi-coll/parameters.h"

namespace {
std::atomic<std::size_t> held_bytes{0};
}  // namespace

void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  held_bytes += malloc_usable_size(memory);
  return memory;
}
void operator delete(void* memory) noexcept {
  held_bytes -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { ::operator delete(memory); }

namespace cepheus::coll {
namespace {

// Where all ranks know the places, rank 0 keeps none of the identities that it gathered.
TEST(Arrangement, HoldsNoIdentitiesOnceThePlacesAreKnown) {
  constexpr int kRanks = 128;
  fake::use_small_sizes();
  parameters().ranks_per_host = -1;  // a host is a NIC
  fake::Fabric fabric;
  fake::OpenMpi open_mpi(kRanks);
  std::vector<Team> teams;
  for (int rank = 0; rank < kRanks; ++rank)
    teams.push_back(Team::all(open_mpi.communicator(rank), -10));
  std::vector<std::unique_ptr<Arrangement>> all;
  for (const Team& team : teams) all.push_back(std::make_unique<Arrangement>(team));
  for (int done = 0; done < kRanks;) {
    done = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      fabric.caller = rank;
      done += all[static_cast<std::size_t>(rank)]->progress() ? 1 : 0;
    }
    for (auto next = open_mpi.deliverable(); !next.empty(); next = open_mpi.deliverable())
      open_mpi.deliver(next.front());
  }
  ASSERT_EQ(all.front()->placement().shape, Placement::Shape::kFlat);
  const std::size_t held = held_bytes;
  all.front().reset();
  EXPECT_LT(held - held_bytes, kRanks * sizeof(Identity));
}

}  // namespace
}  // namespace cepheus::coll
