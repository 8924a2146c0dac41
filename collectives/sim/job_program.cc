// A job with a safeguard has few sizes, so that classes of sizes have many calls. A healthy job repeats
// its first half.
#include "collectives/sim/job_program.h"

#include <iterator>

namespace cepheus::coll::sim {

namespace {

// In two size classes. The first two are small broadcasts, which have a lane of their own.
constexpr std::size_t kFewSizes[] = {140, 250, 600, 1000};
// ... of a rank's block.
constexpr std::size_t kFewBlocks[] = {5, 8, 29, 32};

// Of a generator of its own, so that other parts of a seed's job stay as they are.
void add_reductions(const JobPlan& plan, std::vector<Call>& program) {
  std::mt19937_64 random(plan.seed ^ 0x5EED);
  constexpr coll::Collective kKinds[] = {coll::Collective::kBarrier, coll::Collective::kAllreduce,
                                         coll::Collective::kReduce, coll::Collective::kAllgather};
  for (Call& each : program) {
    if (random() % 2 == 0) continue;
    each.collective = kKinds[random() % std::size(kKinds)];
    const std::size_t most = random() % 8 == 0 ? 120 : 40;  // some are too long for the group
    each.bytes = 0;
    if (each.collective == coll::Collective::kBarrier) continue;
    const std::size_t drawn = random();
    each.bytes = plan.has_safeguard ? kFewBlocks[drawn % std::size(kFewBlocks)] : 1 + drawn % most;
  }
}

// Half of the allreduces and reduces are long then: too long for one gather of the fake's groups, or also
// for one of their units. Of a generator of its own, too.
void lengthen(const JobPlan& plan, std::vector<Call>& program) {
  std::mt19937_64 random(plan.seed ^ 0x10C6), of_types(plan.seed ^ 0xF10B);
  for (Call& each : program) {
    const bool is_reduced = each.collective == coll::Collective::kAllreduce ||
                            each.collective == coll::Collective::kReduce;
    if (!is_reduced || random() % 2 == 0) continue;
    if (random() % 4 != 0) each.sums = arithmetic::Type::kInt32;
    if (of_types() % 2 == 0) each.sums = arithmetic::Type::kFloat;
    const std::size_t values = plan.has_safeguard ? 150 + random() % 100 : 60 + random() % 1200;
    each.bytes = sizeof(float) * values;
  }
}

}  // namespace

std::vector<Call> make_program(const JobPlan& plan, std::mt19937_64& random) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<Call> program;
  const int blocking = pick(3);
  for (std::size_t i = 0; i < plan.steps; ++i) {
    const std::size_t bytes = pick(3) == 0 ? 300 + static_cast<std::size_t>(pick(700))
                                           : 1 + static_cast<std::size_t>(pick(256));
    program.push_back({pick(plan.ranks), plan.has_safeguard ? kFewSizes[pick(4)] : bytes,
                       blocking == 0 || (blocking == 1 && pick(2) == 0)});
  }
  if (plan.reduces) add_reductions(plan, program);
  if (plan.reduces_long) lengthen(plan, program);
  // The second half repeats the first, so it needs no more memory.
  if (plan.is_healthy()) {
    for (std::size_t i = 0; i < plan.steps; ++i) program.push_back(program[i]);
  }
  return program;
}

// Of a generator of its own, so that other parts of a seed's job stay as they are.
void change_lanes(const JobPlan& plan, std::size_t at, std::vector<Call>& program) {
  std::mt19937_64 random(plan.seed ^ 0x1A9E);
  const bool begins_small = random() % 4 == 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (!program[i].is_broadcast()) continue;
    const bool is_small = begins_small == (i < at);
    program[i].bytes = kFewSizes[(is_small ? 0 : 2) + random() % 2];
  }
}

}  // namespace cepheus::coll::sim
