// Each event is one of four at random: deliver a message, move a NIC's packet, end a
// registration, let a rank go on. Virtual time grows by 1 ms an event. If nothing moves for long,
// time jumps and watchdogs fire.
//
// Bounds: kMostEvents without the end of a call are a failure of liveness; an aborted job ends after
// kEventsToAbort.
#include "collectives/sim/simulated_job.h"

#include <algorithm>

#include "collectives/core/counters.h"
#include "collectives/core/parameters.h"
#include "collectives/fakes/allocations.h"
#include "collectives/fakes/fake_clock.h"

namespace cepheus::coll::sim {

namespace {

constexpr std::uint64_t kMostEvents = 400'000;  // in which no call ends
constexpr std::uint64_t kEventsToAbort = 1000;  // until all processes of an aborted job have ended
constexpr std::uint64_t kEventsToReconnect = 4000;

std::byte byte_of(std::size_t broadcast, std::size_t at) {
  return static_cast<std::byte>(broadcast * 131 + at * 7 + 1);
}

}  // namespace

SimulatedJob::SimulatedJob(const JobPlan& plan)
    : plan_(plan),
      random_(~plan.seed),
      program_(make_program(plan_, random_)),
      fault_(plan.fault),
      more_faults_(plan.more_faults),
      inject_at_(plan.event),
      refusal_(plan_, program_),
      mpi_(plan.ranks) {
  fake::now() = {};
  fake::use_small_sizes();
  if (plan.requires_multicast) parameters().mode = static_cast<int>(Mode::kRequire);
  if (plan.has_safeguard) fake::use_safeguard();
  if (plan.copies_little) parameters().copied_bytes = 0;
  if (plan.reduces_long) fake::use_long_reductions();
  parameters().reproducible = static_cast<int>(plan.reproducible);
  fabric_.is_flat = plan.is_flat;
  fabric_.has_ascending_addresses = plan.has_ascending_addresses;
  fabric_.refuses_sums = !plan.has_memory_for_sums;
  fault_step_ = static_cast<std::size_t>(pick(static_cast<int>(plan.steps)));
  if (plan.fails_between_lanes) {
    fault_step_ = std::max<std::size_t>(fault_step_, 1);
    change_lanes(plan_, fault_step_, program_);
  }
  fabric_.portion = plan.portion;
  if (plan.has_slow_rank) slow_rank_ = pick(plan.ranks);
  slow_link_ = {slow_rank_ >= 0 ? slow_rank_ : pick(plan.ranks), pick(plan.ranks)};
  if (fault_ == Fault::kTaken) fabric_.outcomes = {MCAST_ERR_ID_IN_USE, MCAST_OK};
  if (fault_ == Fault::kRefused)
    fabric_.outcomes = {MCAST_ERR_ID_IN_USE, MCAST_ERR_TIMED_OUT, MCAST_OK, MCAST_ERR_REJECTED,
                        MCAST_OK};
  mpi_.refused_after = refusal_.after();
  mpi_.refuses_so = refusal_.when();
  if (plan.refused != Refused::kAgreement) mpi_.most_refused = 1;
  for (int rank = 0; rank < plan.ranks; ++rank)
    ranks_.push_back(std::make_unique<Rank>(rank, mpi_, plan.ranks_per_host));
  lost_before_ = counters().fallbacks()[static_cast<std::size_t>(Cause::kLost)];
  repaired_before_ = counters().values()[static_cast<std::size_t>(Counters::Which::kRepaired)];
}

SimulatedJob::~SimulatedJob() = default;

JobOutcome SimulatedJob::run() {
  std::uint64_t& event = outcome_.events;
  std::optional<std::uint64_t> aborted_at;
  for (; !is_over() && !outcome_.failure; ++event) {
    if (!aborts_.empty() && !aborted_at) aborted_at = event;
    if (aborted_at && event > *aborted_at + kEventsToAbort) break;
    if (ends_at_ && event >= *ends_at_) break;
    if (event == ended_at_ + kMostEvents)
      fail("liveness: broadcast " + std::to_string(slowest()) + " does not end");
    fake::now() += std::chrono::milliseconds(1);
    if (!injected_at_ && is_due(event) && inject()) injected_at_ = event;
    if (injected_at_ && event == *injected_at_ + kEventsToReconnect &&
        fault_ != Fault::kDisconnectedForLong)
      fabric_.reconnect();
    if (plan_.limits_rnr_retries() && pick(50) == 0) end_rnr_retries();
    if (injected_at_ && more_faults_ > 0 && pick(is_new_group_ ? 4 : 2000) == 0) inject_again();
    is_new_group_ = false;
    if (injected_at_ && fault_ == Fault::kDeath) {
      if (!ends_at_) ends_at_ = event + plan_.events_to_end;
      if (plan_.returns_errors && pick(50) == 0) mpi_.fail_operations_with_the_dead();
    }
    ++idle_;
    if (act()) {
      idle_ = 0;
      stalled_.clear();
    }
    if (idle_ > 40 * ranks_.size() && aborts_.empty()) fire_watchdogs();
  }
  check_end_of_job();
  return outcome_;
}

// --- The random world.

bool SimulatedJob::is_over() const {
  return std::ranges::all_of(ranks_, [](const auto& each) { return each->is_closed; });
}

std::size_t SimulatedJob::furthest() const {
  std::size_t most = 0;
  for (const auto& rank : ranks_) most = std::max(most, rank->at);
  return most;
}

std::size_t SimulatedJob::slowest() const {
  std::size_t least = program_.size();
  for (const auto& rank : ranks_) least = std::min(least, rank->at);
  return least;
}

// True if that changed anything.
bool SimulatedJob::act() {
  switch (pick(4)) {
    case 0: {
      const auto messages = mpi_.deliverable();
      if (messages.empty()) return false;
      const std::size_t one = one_of(messages);
      if (is_late(one)) return false;
      mpi_.deliver(one);
      return true;
    }
    case 1: {
      const auto ends = fabric_.deliverable();
      const auto moves = plan_.reduces ? fabric_.moves() : std::vector<fake::Fabric::Move>();
      if (!moves.empty() && (ends.empty() || pick(2) == 0)) {
        fabric_.move(one_of(moves));
        return true;
      }
      if (ends.empty()) return false;
      fabric_.deliver(one_of(ends));
      return true;
    }
    case 2: {
      const auto leaders = fabric_.registering();
      if (leaders.empty()) return false;
      fabric_.conclude(one_of(leaders));
      if (plan_.set_up == set_ups_++)
        inject_at_ = outcome_.events + static_cast<unsigned>(pick(100));
      return is_new_group_ = true;
    }
    default:
      return step_or_abort(*one_of(ranks_));
  }
}

bool SimulatedJob::is_late(std::size_t message) {
  const Team& team = ranks_.front()->caller.team();
  if (mpi_.receiver(message) != slow_link_.second) return false;
  const int tag = mpi_.tag(message);
  const bool is_slow = plan_.has_slow_link && mpi_.sender(message) == slow_link_.first &&
                       (tag == team.tag(Tag::kControl) || tag == team.tag(Tag::kReductionControl));
  const bool is_outcome = tag == team.tag(Tag::kOutcome) || tag == team.tag(Tag::kReductionOutcome);
  const bool is_unheard = plan_.has_slow_set_up && is_outcome;
  return (is_slow || is_unheard) && pick(100) != 0;
}

// --- A rank's program.

bool SimulatedJob::step_or_abort(Rank& rank) {
  refusal_.arm(mpi_, rank.caller.team(), rank.rank, rank.at, may_confirm(rank.at));
  try {
    const bool has_moved = step(rank);
    refusal_.note(mpi_, rank.at);
    return has_moved;
  } catch (const fake::Aborted& abort) {
    aborts_.push_back(abort);
    rank.is_closed = true;
    return true;
  }
}

bool SimulatedJob::step(Rank& rank) {
  if (rank.is_closed || rank.is_dead) return false;
  if (rank.rank == slow_rank_ && pick(30) != 0) return false;
  fabric_.caller = rank.rank;
  if (rank.at == program_.size()) return close(rank);
  if (rank.is_saved) return serve_saved(rank);
  if (!rank.caller.is_calling()) {
    // The program computes, or is in MPI for something else.
    if (pick(3) != 0) {
      if (pick(4) != 0) return false;
      fabric_.progress(rank.rank);
      rank.caller.look_after();
      return false;
    }
    begin(rank);
  }
  // A completion right behind a look at the NIC waits for the next one.
  rank.nic_waits = !rank.nic_waits && pick(2) == 0;
  if (!rank.nic_waits) fabric_.progress(rank.rank);
  const Code rc = rank.caller.progress();
  refusal_.note(mpi_, rank.at);
  rank.caller.look_after();
  if (rc == Code::kPending) return false;
  rank.is_saved = rc == Code::kNotServed;
  if (!rank.is_saved) end(rank, rc);
  return true;
}

// A rank knows that the call is right behind an agreement.
bool SimulatedJob::may_confirm(std::size_t call) const {
  return std::ranges::any_of(ranks_, [&](const auto& each) {
    return each->at == call && each->caller.is_calling() && each->caller.confirms();
  });
}

void SimulatedJob::begin(Rank& rank) {
  const Call& now = program_[rank.at];
  if (now.is_broadcast()) {
    rank.memory.assign(now.bytes, std::byte{0xEE});
    if (now.root == rank.rank) fill(rank);
    rank.caller.begin(rank.memory, now.root, now.blocking, plan_.has_gaps && pick(3) == 0);
  } else {
    begin_reduction(rank, now);
  }
  // A rank that has failed fails the next agreement.
  const bool has_failed = rank.how.find('e') != std::string::npos;
  if (has_failed && rank.caller.is_agreement_due()) refusal_.end_from(rank.at);
}

void SimulatedJob::begin_reduction(Rank& rank, const Call& call) {
  rank.memory = fake::memory_before(call.shape(), plan_.ranks, rank.rank, rank.at, call.library());
  rank.caller.begin(call.shape(), rank.memory, call.blocking, Code::kDone, call.library());
}

std::optional<std::size_t> SimulatedJob::first_wrong_byte(const Rank& rank) const {
  for (std::size_t i = 0; i < rank.memory.size(); ++i) {
    if (rank.memory[i] != byte_of(rank.at, i)) return i;
  }
  return std::nullopt;
}

void SimulatedJob::fill(Rank& rank) const {
  for (std::size_t i = 0; i < rank.memory.size(); ++i) rank.memory[i] = byte_of(rank.at, i);
}

// A broadcast waits for its root, any other call for all ranks.
bool SimulatedJob::may_leave_saved(const Rank& rank) const {
  const Call& now = program_[rank.at];
  if (now.is_broadcast()) return now.root == rank.rank || saved_.contains(rank.at);
  return std::ranges::all_of(ranks_, [&](const auto& each) {
    return each->at > rank.at || (each->at == rank.at && each->is_saved);
  });
}

// The host's own algorithm, in which all ranks meet. A rank that waits there progresses the NIC, as
// MPI's progress does: else a root could not answer that an earlier broadcast has been delivered.
bool SimulatedJob::serve_saved(Rank& rank) {
  if (!may_leave_saved(rank)) {
    fabric_.progress(rank.rank);
    rank.caller.look_after();
    return false;
  }
  const Call& now = program_[rank.at];
  if (now.is_broadcast()) {
    saved_.insert(rank.at);
    fill(rank);
  } else {
    rank.memory = fake::memory_after(now.shape(), plan_.ranks, rank.rank, rank.at, now.library());
  }
  end(rank, Code::kDone);
  return true;
}

void SimulatedJob::end(Rank& rank, Code rc) {
  const Route route = rank.is_saved ? Route::kSaved : rank.caller.route();
  const bool is_reduced = !program_[rank.at].is_broadcast();
  rank.how += is_reduced && rc != Code::kDone ? 'e'
              : route == Route::kSaved        ? 's'
              : route == Route::kTree         ? 't'
              : route == Route::kMessages     ? 'x'
              : is_reduced                    ? 'n'
                                              : 'm';
  check_end_of_call(rank, rc);
  if (rank.caller.is_refused(rc)) refusal_.end_from(rank.at + 1);
  // The program uses its memory for something else.
  std::fill(rank.memory.begin(), rank.memory.end(), std::byte{0xDD});
  rank.is_saved = false;
  rank.caller.finish(rc);
  ++rank.at;
  ended_at_ = outcome_.events;
  if (!is_half_ && slowest() >= plan_.steps) {
    is_half_ = true;
    allocations_ = fake::allocations();
  }
}

bool SimulatedJob::close(Rank& rank) {
  fabric_.progress(rank.rank);
  if (!rank.caller.close()) return false;
  return rank.is_closed = true;
}

}  // namespace cepheus::coll::sim
