// A message that MPI refuses to one rank of a simulated job, and the ends that the ranks' reductions may
// have then. The program has asked for errors.
//
//   before the refused reduction   all succeed. Only the last one may fail at ranks without its result
//   the refused one                it fails at the rank, if the refused message is a part of it
//   behind it                      all fail. Only the host's own function may serve some, by plans that
//                                  the ranks had agreed on before. That ends with the first agreement
//                                  behind a rank's error, or at once if a rank has refused the reduction
//
// Two messages of a set-up end nothing, because all members learn of their failure: the receive of the
// outcome, if it is refused at once, and the leader's receive of a record, if it fails as it completes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collectives/fakes/fake_mpi.h"
#include "collectives/group/team.h"
#include "collectives/sim/job_plan.h"
#include "collectives/sim/job_program.h"

namespace cepheus::coll::sim {

class Refusal {
 public:
  // Both outlive it.
  Refusal(const JobPlan& plan, const std::vector<Call>& program);

  // --- Events.
  // Rank `rank` goes on in call `call`. `confirms`: a rank knows that it is right behind an agreement.
  void arm(fake::Mpi& mpi, const Team& team, int rank, std::size_t call, bool confirms) const;
  // It has gone on in call `call`.
  void note(const fake::Mpi& mpi, std::size_t call);
  // No reduction succeeds from `call` on.
  void end_from(std::size_t call);

  // --- Questions.
  // MPI refuses the message behind this number of others like it.
  int after() const { return after_; }
  // ... in this way.
  fake::Mpi::Refuses when() const { return when_; }
  // MPI has refused the message.
  bool has_happened() const { return at_.has_value(); }
  // The reduction must not end so; empty: it may.
  std::string why_wrong(int rank, std::size_t call, bool is_saved, Code rc) const;
  // Ranks that complete the call do not wait for the rank with the refused message.
  bool may_end_both_ways(std::size_t call) const;

 private:
  std::size_t before() const;
  bool ends_nothing() const;
  void choose_set_up_message(std::size_t drawn);

  const JobPlan& plan_;
  const std::vector<Call>& program_;
  int rank_ = -1;
  std::size_t from_ = 0;  // call
  Tag tag_ = Tag::kTimes;
  bool is_send_ = false;
  int after_ = 0;  // messages of the kind
  fake::Mpi::Refuses when_ = fake::Mpi::Refuses::kAtOnce;
  std::optional<std::size_t> at_;         // call
  std::optional<std::size_t> ends_from_;  // call
};

}  // namespace cepheus::coll::sim
