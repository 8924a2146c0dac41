// The collectives of all ranks of a job, over the fakes of MPI and of a fabric, in random order on
// virtual time. Watched rules:
//
//   data       a rank with success has every byte, of each broadcast in its order, and each result
//   begun      a reduction ends without an error only once all ranks have begun it
//   error      an error has a cause: the fabric lost that unit, or a process died, or MPI refused a rank a
//              message (refusal.h)
//   path       all ranks take the same path in each call. A reduction ends in an error on all or none,
//              but the one in which MPI refused a message, and the one before
//   bits       the saved function reduces nothing, because it may do so in another order. A
//              death excuses nothing here, nor in the rules above but "error" and "path"
//   liveness   every call ends
//   memory     nothing uses the program's memory once its call has ended
//   life       nobody uses what was destroyed
//   residue    no group, no receive and no data is left behind at the end
//   failover   in a job without a fault and without a safeguard multicast serves every broadcast, and
//              the network every reduction that fits
//   allocation a call allocates nothing once its like has been served
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectives/fakes/caller.h"
#include "collectives/fakes/fake_fabric.h"
#include "collectives/fakes/fake_mpi.h"
#include "collectives/sim/job_plan.h"
#include "collectives/sim/job_program.h"
#include "collectives/sim/refusal.h"

namespace cepheus::coll::sim {

// The outcome of a job.
struct JobOutcome {
  std::optional<std::string> failure;  // "data: rank 2 ..."
  std::uint64_t events = 0;
  std::uint64_t multicast = 0, tree = 0, saved = 0, errors = 0;   // calls of all ranks
  std::uint64_t network = 0, messages = 0, saved_reductions = 0;  // reductions of all ranks
  std::uint64_t repaired = 0;                                     // units, point to point
  std::uint64_t other_sums = 0;  // ranks' floating-point sums in other pairs than by rank
  std::uint64_t comparisons = 0, changes = 0;  // of the safeguard; of the way that it has chosen
  std::uint64_t returns = 0;                   // jobs in which multicast served again
  std::uint64_t aborts = 0;                    // jobs that a rank ended
  std::array<std::uint64_t, kRefusals>
      refused{};  // jobs in which MPI refused a rank a message, by kind

  JobOutcome& operator+=(const JobOutcome& other);
};

class SimulatedJob {
 public:
  explicit SimulatedJob(const JobPlan& plan);
  ~SimulatedJob();

  JobOutcome run();

 private:
  struct Rank {
    Rank(int r, fake::Mpi& mpi, int ranks_per_host)
        : rank(r), caller(mpi.communicator(r), ranks_per_host) {}
    int rank;
    fake::Caller caller;
    std::size_t at = 0;      // call
    bool is_saved = false;   // waits in the saved function
    bool nic_waits = false;  // its last look left the NIC out
    bool is_dead = false;
    bool is_closed = false;
    std::vector<std::byte> memory;
    std::string
        how;  // by call: m multicast, t tree, s saved function, n network, x messages, e error
    std::size_t errors = 0;
  };

  // The random world.
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <typename T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
  }
  bool act();
  bool is_due(std::uint64_t event);
  bool inject();
  void inject_again();
  std::vector<std::uint32_t> ends_between_lanes() const;
  void end_rnr_retries();
  void fire_watchdogs();
  bool is_late(std::size_t message);

  // A rank's program.
  bool step_or_abort(Rank& rank);
  bool step(Rank& rank);
  bool may_confirm(std::size_t call) const;
  void begin(Rank& rank);
  void fill(Rank& rank) const;
  void begin_reduction(Rank& rank, const Call& call);
  bool may_leave_saved(const Rank& rank) const;
  bool serve_saved(Rank& rank);
  void end(Rank& rank, Code rc);
  bool close(Rank& rank);

  // The invariants.
  void fail(const std::string& text);
  std::optional<std::size_t> first_wrong_byte(const Rank& rank) const;
  void check_end_of_call(Rank& rank, Code rc);
  void check_end_of_reduction(const Rank& rank, Code rc);
  bool has_right_result(const Rank& rank);
  bool check_alike(const Rank& rank);
  void check_end_of_job();
  void check_paths();
  void check_aborts();
  void check_left_behind();
  void count_ways();
  bool has_died() const;
  bool is_over() const;
  std::size_t furthest() const;
  std::size_t slowest() const;

  const JobPlan plan_;
  std::mt19937_64 random_;
  std::vector<Call> program_;
  std::map<std::size_t, std::vector<std::byte>> sums_;  // of allreduces, by call
  Fault fault_;
  std::size_t fault_step_ = 0;
  int more_faults_;
  // The events at which the fault is due, was injected, and the launcher ends the job.
  std::optional<std::uint64_t> inject_at_, injected_at_, ends_at_;
  std::uint64_t ended_at_ = 0;          // event: the last call that ended
  std::size_t idle_ = 0;                // events without effect
  std::vector<std::uint32_t> stalled_;  // ends with sends that waited when watchdogs fired last
  int slow_rank_ = -1;
  Refusal refusal_;
  std::pair<int, int> slow_link_;
  std::size_t set_ups_ = 0;      // groups that were registered, or refused
  bool is_new_group_ = false;    // since the last event
  std::size_t allocations_ = 0;  // when all ranks had passed the first half
  bool is_half_ = false;
  unsigned long long lost_before_, repaired_before_;  // counters of the process

  fake::Mpi mpi_;
  fake::Fabric fabric_;
  std::vector<fake::Aborted> aborts_;
  std::set<std::size_t> saved_;  // broadcasts whose root is in the saved function
  std::vector<std::unique_ptr<Rank>> ranks_;
  JobOutcome outcome_;
};

}  // namespace cepheus::coll::sim
