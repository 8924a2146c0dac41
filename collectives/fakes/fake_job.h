// The ranks of a job over the fakes of MPI and of a fabric, for tests with one story. A rank
// broadcasts, or reduces, on the test's command, and all messages then move. A test fails if one rank takes the
// saved function for a call and another does not. The saved function takes a rank one
// millisecond.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/fakes/caller.h"
#include "collectives/fakes/fake_fabric.h"
#include "collectives/fakes/fake_mpi.h"

namespace cepheus::coll::fake {

class Job {
 public:
  // If several ranks share a host, the first one leads it.
  explicit Job(int size, int ranks_per_host = 1);

  // The rank calls a broadcast. Its root's data depends on `bytes` alone. `has_gaps`: the data lies
  // in no contiguous memory.
  void begin(int rank, int root, std::size_t bytes, bool blocking = true, bool has_gaps = false);
  void begin_all(int root, std::size_t bytes, bool blocking = true);
  // The rank calls a reduction, in place. `data`: unless Code::kDone, its data can't be read.
  void reduce(int rank, const ReductionShape& shape, Code data = Code::kDone, bool blocking = true);
  void reduce_all(const ReductionShape& shape, bool blocking = true);
  // The rank advances its call and the groups. `at_nic`: and, first, its NIC.
  void look(int rank, bool at_nic = true);
  // All that can move does; no rank looks.
  void move();
  // All ranks look, and all that can move does.
  void pass(std::chrono::milliseconds time);
  // The same until no rank broadcasts. False if one still does after `most`.
  bool run(std::chrono::milliseconds most = std::chrono::seconds(20));
  // One rank gives its communicator back. False: it waits for others.
  bool close(int rank) { return at(rank).caller->close(); }
  // All ranks give their communicator back. False if one can't.
  bool close();

  // The outcome of the rank's broadcast. Code::kPending: it is not done.
  Code result(int rank) const { return at(rank).result; }
  std::vector<Code> results() const;
  Route route(int rank) const { return at(rank).caller->route(); }
  std::string reason(int rank) const { return at(rank).caller->reason(); }
  bool is_comparable(int rank) const { return at(rank).caller->is_comparable(); }
  // The comparisons of rank 0's safeguard.
  std::size_t comparisons() const { return at(0).caller->comparisons(); }
  // True if the rank has the data of its last broadcast.
  bool has_data(int rank) const;
  bool all_have_data() const;
  // All ranks have the result of their last call, a reduction.
  bool all_have_results() const;
  // ... an allreduce: and it is alike on all.
  bool have_equal_results() const;
  // The rank's end of the lane that was set up last.
  std::uint32_t last_end(int rank) const;
  // All ranks, as the rank knows them.
  const Team& team(int rank) const { return at(rank).caller->team(); }

  Mpi mpi;
  Fabric fabric;
  int unheard = -1;  // no message reaches this rank but by the fabric
  Library library;   // reductions from now on have this operation

 private:
  struct Rank {
    std::unique_ptr<Caller> caller;
    std::vector<std::byte> memory;
    ReductionShape shape{};  // of a broadcast: its collective alone
    Code result = Code::kDone;
    std::size_t calls = 0;  // that have returned
  };
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(ranks_.size()); }
  bool is_over() const;
  void end(int rank, Code rc);
  static void fill(Rank& rank);
  void serve_saved(int rank);
  void pass_moment();

  std::vector<Rank> ranks_;
  std::map<std::size_t, bool> is_saved_;  // by call: whether its first rank took the saved function
};

}  // namespace cepheus::coll::fake
