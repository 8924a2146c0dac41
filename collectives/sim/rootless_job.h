// The reductions of all ranks of a job under one agreement, over the fakes of MPI and of groups that
// reduce, in random order on virtual time. Watched rules:
//
//   begun      a call ends without an error only once all ranks have begun it
//   data       a rank with success has every byte of its result, reduced pairwise by rank
//   path       each call goes the same way on all ranks, or ends in an error at some
//   error      a call ends in an error only if a process died
//   liveness   every call of a living rank ends
//   memory     if a call ends in an error or by the host, this rank's NIC writes no results any more
//   failover   no group is given up without a fault, and a failure of broadcasts gives up none
//   kept       once all ranks have left, none keeps results for others
//   residue    ... and no message of a failover is left behind
//
// A rank's program is in MPI or not, computes, and has several non-blocking calls in flight. It
// leaves once all ranks have reported that they are ready, as at the end of a communicator.
//
// Two things are simpler than in MPI, so no seed shows the engine's limits on them
// (core/rootless_agreement.h). The host's collectives match by the agreement's number of the call,
// not by the order of their start. And if the host reports a death, it ends every collective of its
// own in an error, also where a rank waits for a living one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/sim/reducing_member.h"
#include "collectives/sim/rootless_world.h"

namespace cepheus::coll::sim {

struct RootlessOutcome {
  std::optional<std::string> failure;  // "data: rank 2 ..."
  std::uint64_t events = 0;
  std::uint64_t by_group = 0, by_host = 0, errors = 0;  // calls of all ranks
  std::uint64_t copied = 0;                             // results, point to point
  std::uint64_t failovers = 0, returns = 0;             // of jobs; jobs with a later group
  std::uint64_t lost = 0;                               // jobs with a result that was lost

  RootlessOutcome& operator+=(const RootlessOutcome& other);
};

class RootlessJob {
 public:
  explicit RootlessJob(const RootlessPlan& plan, bool traces = false);

  RootlessOutcome run();

 private:
  struct Rank {
    Rank(int r, RootlessWorld& world) : rank(r), member(r, world) {}
    int rank;
    ReducingMember member;
    std::size_t at = 0;              // in the program
    bool is_waiting = false;         // in a blocking call
    std::uint64_t absent_until = 0;  // event
    bool nic_waits = false;          // its last look left the NIC out
    bool has_ended = false;          // its calls
    bool is_ready = false;           // has ended all calls, and needs nothing: once true, for ever
    bool is_gone = false;            // with the others
    std::string how;                 // by reduction, as ReducingMember::How
  };

  // The random world.
  bool act();
  bool move_message();
  bool move_in_group();
  bool move_set_up();
  void inject(GroupFault fault);
  void inject_due();
  void fail_ends();
  void fire_watchdog();
  void report_death();
  fake::ReducingGroup* whole_group();

  // A rank's program.
  bool step(Rank& rank);
  bool begin(Rank& rank);
  void end(Rank& rank, const ReducingMember::Ended& ended);
  void leave(Rank& rank);

  // The invariants.
  void fail(const std::string& text);
  Bytes expected(std::size_t index, int rank) const;
  void check_end(const Rank& rank, const ReducingMember::Ended& ended);
  void check_end_of_job();
  void check_paths();
  bool is_over() const;
  bool is_alive(const Rank& rank) const { return world_.dead != rank.rank; }

  RootlessWorld world_;
  const RootlessPlan& plan_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  RootlessOutcome outcome_;
  RootlessAgreement::Time now_{};
  std::uint64_t idle_ = 0, ended_at_ = 0;  // events
  std::optional<std::uint64_t> died_at_, reconnect_at_;
  bool is_injected_ = false, is_silent_ = false;
  int more_faults_;
  std::size_t groups_with_faults_ = 0;
  int refusals_ = 0;
  std::vector<int> failing_;             // ends that will fail
  std::vector<std::size_t> broadcasts_;  // by broadcast of the program: ranks in it
  int slow_rank_ = -1;
  std::pair<int, int> slow_link_{-1, -1};
};

// Simulated jobs by seeds. Without the rules `off`, which are some of kRootlessRules.
extern const std::vector<std::string> kRootlessRules;
RootlessOutcome run_rootless_seed(std::uint64_t seed, const std::vector<std::string>& off = {},
                                  bool traces = false);

}  // namespace cepheus::coll::sim
