// The calls of a simulated job's program, the same on all ranks.
#pragma once

#include <cstddef>
#include <optional>
#include <random>
#include <vector>

#include "collectives/reduction.h"
#include "collectives/sim/job_plan.h"

namespace cepheus::coll::sim {

struct Call {
  int root;
  std::size_t bytes;  // of a reduction: of a rank's contribution
  bool blocking;
  coll::Collective collective = coll::Collective::kBcast;
  // Of a reduction; empty: the program's operation.
  std::optional<arithmetic::Type> sums = std::nullopt;

  bool is_broadcast() const { return collective == coll::Collective::kBcast; }
  ReductionShape shape() const {
    return {collective, bytes, root, false, sums ? sizeof(float) : 1};
  }
  bool sums_floats() const { return sums == arithmetic::Type::kFloat; }
  std::optional<arithmetic::Combiner> library() const {
    if (!sums) return std::nullopt;
    return arithmetic::Combiner::find(arithmetic::Operation::kSum, *sums);
  }
};

// `random`: the job's.
std::vector<Call> make_program(const JobPlan& plan, std::mt19937_64& random);
// One lane serves all broadcasts before call `at`, and the other one those behind it.
void change_lanes(const JobPlan& plan, std::size_t at, std::vector<Call>& program);

}  // namespace cepheus::coll::sim
