// The invariants of a simulated job (simulated_job.h lists them). Each end of a call is checked for
// its data, error, reason and memory. The end of the job is checked for paths, aborts, and what is
// left behind.
//
// A death excuses errors and differing paths; a loss that the fabric knows of excuses one error.
// Only a job without any fault must multicast every broadcast and allocate nothing in its second
// half. The first failure is kept.
#include <algorithm>

#include "collectives/core/counters.h"
#include "collectives/fakes/allocations.h"
#include "collectives/group/transport.h"
#include "collectives/multicast.h"
#include "collectives/sim/simulated_job.h"

namespace cepheus::coll::sim {

namespace {

constexpr std::size_t kGrowth = 3;  // times that a rank's queues may grow

std::string count(std::size_t number, const char* what) {
  return std::to_string(number) + " " + what;
}

}  // namespace

JobOutcome& JobOutcome::operator+=(const JobOutcome& other) {
  events += other.events;
  multicast += other.multicast;
  tree += other.tree;
  saved += other.saved;
  errors += other.errors;
  network += other.network;
  messages += other.messages;
  saved_reductions += other.saved_reductions;
  repaired += other.repaired;
  other_sums += other.other_sums;
  comparisons += other.comparisons;
  changes += other.changes;
  returns += other.returns;
  aborts += other.aborts;
  for (std::size_t i = 0; i < refused.size(); ++i) refused[i] += other.refused[i];
  return *this;
}

void SimulatedJob::fail(const std::string& text) {
  if (!outcome_.failure) outcome_.failure = text;
}

void SimulatedJob::check_end_of_call(Rank& rank, Code rc) {
  const Call& now = program_[rank.at];
  if (!now.is_broadcast()) return check_end_of_reduction(rank, rc);
  const std::string where = "rank " + std::to_string(rank.rank) + ", broadcast " +
                            std::to_string(rank.at) + " of " + count(now.bytes, "bytes") +
                            " from rank " + std::to_string(now.root);
  if (rc == Code::kDone) {
    const auto wrong = first_wrong_byte(rank);
    if (wrong) fail("data: " + where + " succeeds without byte " + std::to_string(*wrong));
  } else {
    ++rank.errors;
    const bool is_lost =
        rc == Code::kFailed && rank.errors <= fabric_.lost_for_good(rank.caller.leader());
    // Other ranks of a job that is being aborted may see an error first.
    const bool is_excused =
        has_died() || !aborts_.empty() || (is_lost && !plan_.requires_multicast);
    if (!is_excused)
      fail("error: " + where + " ends in error " + std::to_string(static_cast<int>(rc)));
  }
  const bool is_multicast = !rank.is_saved && rank.caller.route() != Route::kTree;
  const std::string why = rank.caller.reason();
  if (rc == Code::kDone && !is_multicast && (why.empty() || why == Multicast::kMulticast))
    fail("reason: " + where + " does not go by multicast, for the reason '" + why + "'");
  if (fabric_.uses(rank.memory) || mpi_.uses(rank.memory))
    fail("memory: " + where + " has ended, but its memory is in use");
}

void SimulatedJob::check_end_of_reduction(const Rank& rank, Code rc) {
  const std::string where = "rank " + std::to_string(rank.rank) + ", call " +
                            std::to_string(rank.at) + ", " + name(program_[rank.at].collective) +
                            " of " + count(program_[rank.at].bytes, "bytes");
  if (fabric_.uses(rank.memory) || mpi_.uses(rank.memory))
    fail("memory: " + where + " has ended, but its memory is in use");
  const bool is_excused = has_died() || !aborts_.empty();
  if (const std::string wrong = refusal_.why_wrong(rank.rank, rank.at, rank.is_saved, rc);
      !wrong.empty() && !is_excused)
    fail("error: " + where + wrong);
  if (rc != Code::kDone) return;
  if (std::ranges::any_of(ranks_, [&](const auto& each) {
        return each->at < rank.at || (each->at == rank.at && !each->caller.is_calling());
      }))
    fail("begun: " + where + " ends before all ranks have begun it");
  const Call& now = program_[rank.at];
  if (rank.is_saved && !may_be_saved(now.collective, now.blocking))
    fail("bits: " + where + " goes to the saved function");
  if (!has_right_result(rank)) fail("data: " + where + " has a wrong result");
}

// Each part of a floating-point sum is the network's, or messages have added it by rank.
bool SimulatedJob::has_right_result(const Rank& rank) {
  const Call& now = program_[rank.at];
  const auto right = [&](fake::Pairs pairs) {
    return fake::memory_after(now.shape(), plan_.ranks, rank.rank, rank.at, now.library(), pairs);
  };
  const auto by_rank = right(fake::Pairs::kByRank);
  if (rank.memory == by_rank) return check_alike(rank);
  const bool may_be_others = now.sums_floats() && plan_.networks_sums() && !plan_.adds_by_rank() &&
                             is_long(now.shape(), plan_.ranks);
  if (!may_be_others) return false;
  ++outcome_.other_sums;
  const auto by_tree = right(fake::Pairs::kOthers);
  for (std::size_t at = 0; at + sizeof(float) <= by_rank.size(); at += sizeof(float)) {
    const auto is_of = [&](const std::vector<std::byte>& other) {
      return std::equal(other.begin() + static_cast<std::ptrdiff_t>(at),
                        other.begin() + static_cast<std::ptrdiff_t>(at + sizeof(float)),
                        rank.memory.begin() + static_cast<std::ptrdiff_t>(at));
    };
    if (!is_of(by_rank) && !is_of(by_tree)) return false;
  }
  return check_alike(rank);
}

// All ranks have one result of an allreduce.
bool SimulatedJob::check_alike(const Rank& rank) {
  if (program_[rank.at].collective != coll::Collective::kAllreduce) return true;
  const auto [first, fresh] = sums_.try_emplace(rank.at, rank.memory);
  return fresh || first->second == rank.memory;
}

bool SimulatedJob::has_died() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& each) { return each->is_dead; });
}

void SimulatedJob::check_end_of_job() {
  const bool ended_well = is_over() && aborts_.empty() && !outcome_.failure;
  check_paths();
  check_aborts();
  if (ended_well) check_left_behind();
  count_ways();
  ranks_.clear();
  if (fabric_.misuses() > 0) fail("life: " + count(fabric_.misuses(), "uses of what is destroyed"));
  if (fabric_.groups() > 0 || mpi_.receives() > 0 || Transport::instance().groups() != 0)
    fail("residue: " + count(fabric_.groups(), "groups and ") +
         count(mpi_.receives(), "receives are left"));
}

void SimulatedJob::check_paths() {
  if (has_died()) return;  // ranks count differently after failed calls
  for (const auto& one : ranks_) {
    for (const auto& other : ranks_) {
      const std::size_t both = std::min(one->how.size(), other->how.size());
      for (std::size_t call = 0; call < both; ++call) {
        const char way = one->how[call], its = other->how[call];
        if (way != its && !(refusal_.may_end_both_ways(call) && (way == 'e' || its == 'e')))
          fail("path: ranks " + std::to_string(one->rank) + " and " + std::to_string(other->rank) +
               " take different ways in call " + std::to_string(call));
      }
    }
    const auto fits = [&](const Call& call) {
      return is_long(call.shape(), plan_.ranks)
                 ? call.sums == arithmetic::Type::kInt32 ||
                       (call.sums_floats() && plan_.networks_sums())
                 : call.bytes * static_cast<std::size_t>(plan_.ranks) <= fabric_.reduction_bytes;
    };
    if (plan_.is_healthy() && !plan_.has_safeguard &&
        one->how.find_first_not_of("mnx") != std::string::npos)
      fail("failover: nothing has failed, but multicast did not serve");
    const bool is_failover_checked = plan_.is_healthy() && !plan_.has_safeguard;
    for (std::size_t i = 0; i < one->how.size(); ++i) {
      if (one->how[i] == 'x' && fits(program_[i]) && is_failover_checked)
        fail("failover: nothing has failed, but the network did not reduce");
    }
  }
}

void SimulatedJob::check_aborts() {
  // Unsent data of a dead rank is lost, too.
  // A result that is on its way to a disconnected rank counts as lost after two answers.
  const bool has_lost =
      !fabric_.lost().empty() || has_died() || (plan_.reduces && fabric_.had_disconnected());
  const auto lost = counters().fallbacks()[static_cast<std::size_t>(Cause::kLost)] - lost_before_;
  if (lost > 0 && !has_lost) fail("failover: data is called lost, but none is");
  if (!aborts_.empty() && plan_.is_healthy())
    fail("failover: the job is aborted for nothing: " + aborts_.front().reason);
  const bool is_deaf_alone =
      plan_.fault == Fault::kDeaf && plan_.more_faults == 0 && !plan_.limits_rnr_retries();
  if (is_deaf_alone && aborts_.size() > 1) fail("failover: two ranks abort the job");
  for (const fake::Aborted& abort : aborts_) {
    const bool reports_loss = abort.reason.find("lost data") != std::string::npos;
    if (reports_loss && !has_lost) fail("failover: data is called lost, but none is");
    if (is_deaf_alone && !reports_loss) fail("failover: the abort hides the loss: " + abort.reason);
  }
}

// All ranks have closed their communicator.
void SimulatedJob::check_left_behind() {
  const Team& team = ranks_.front()->caller.team();
  for (int tag = 0; tag < static_cast<int>(Tag::kCount); ++tag) {
    const std::size_t left = mpi_.under_way(team.tag(static_cast<Tag>(tag)));
    if (left > 0)
      fail("residue: " + count(left, "messages of kind ") + std::to_string(tag) + " are left");
  }
  if (mpi_.receives() > 0) fail("residue: " + count(mpi_.receives(), "receives are left"));
  const std::size_t allocations = fake::allocations() - allocations_;
  if (plan_.is_healthy() && !plan_.has_gaps && !plan_.has_slow_rank && !plan_.has_safeguard &&
      allocations > kGrowth * ranks_.size())
    fail("allocation: " + count(allocations, "in broadcasts like earlier ones"));
}

void SimulatedJob::count_ways() {
  for (const auto& rank : ranks_) {
    const auto of = [&](char way) {
      return static_cast<std::uint64_t>(std::count(rank->how.begin(), rank->how.end(), way));
    };
    outcome_.multicast += of('m');
    outcome_.tree += of('t');
    outcome_.saved += of('s');
    outcome_.network += of('n');
    outcome_.messages += of('x');
    for (std::size_t i = 0; i < rank->how.size(); ++i)
      if (rank->how[i] == 's' && !program_[i].is_broadcast()) ++outcome_.saved_reductions;
    outcome_.errors += rank->errors;
  }
  outcome_.comparisons = ranks_.front()->caller.comparisons();
  outcome_.changes = ranks_.front()->caller.changes();
  const std::string& how = ranks_.front()->how;
  if (!plan_.has_safeguard)
    outcome_.returns = how.find('m', how.find_first_of("st")) != std::string::npos ? 1 : 0;
  outcome_.aborts = aborts_.empty() ? 0 : 1;
  if (refusal_.has_happened()) ++outcome_.refused[static_cast<std::size_t>(plan_.refused)];
  outcome_.repaired =
      counters().values()[static_cast<std::size_t>(Counters::Which::kRepaired)] - repaired_before_;
}

}  // namespace cepheus::coll::sim
