// One event after the other: a message, a packet of a group, or news of a set-up moves, or a rank
// runs. The clock adds 1 ms an event, and 500 ms once nothing has moved for long.
#include "collectives/sim/rootless_job.h"

#include <algorithm>

namespace cepheus::coll::sim {

namespace {
constexpr std::uint64_t kMostEventsOfACall = 200'000;  // in which no call ends
constexpr std::uint64_t kEventsDisconnected = 3000;
}  // namespace

RootlessJob::RootlessJob(const RootlessPlan& plan, bool traces)
    : world_(plan), plan_(world_.plan), more_faults_(plan.more_faults) {
  world_.traces = traces;
  for (int rank = 0; rank < plan.ranks; ++rank)
    ranks_.push_back(std::make_unique<Rank>(rank, world_));
  broadcasts_.resize(plan.program.size());
  if (plan.has_slow_rank) slow_rank_ = world_.pick(plan.ranks);
  if (plan.has_slow_link)
    slow_link_ = {world_.pick(2) * world_.pick(plan.ranks), world_.pick(plan.ranks)};
  if (plan.fault == GroupFault::kRefused) refusals_ = 1 + world_.pick(3);
}

RootlessOutcome RootlessJob::run() {
  for (; !is_over() && !outcome_.failure; ++outcome_.events) {
    if (outcome_.events == ended_at_ + kMostEventsOfACall) {
      fail("liveness: calls do not end");
      break;
    }
    if (died_at_ && !plan_.returns_errors && outcome_.events > *died_at_ + plan_.events_to_end)
      break;
    now_ += std::chrono::milliseconds(1);
    world_.event = outcome_.events;
    inject_due();
    fail_ends();
    report_death();
    ++idle_;
    if (act()) idle_ = 0;
    if (idle_ > 15 * ranks_.size()) {
      now_ += std::chrono::milliseconds(500);
      idle_ = 0;
      fire_watchdog();
    }
  }
  check_end_of_job();
  return outcome_;
}

// --- The random world.

bool RootlessJob::act() {
  switch (world_.pick(5)) {
    case 0:
      return move_message();
    case 1:
    case 2:
      return move_in_group();
    case 3:
      return move_set_up();
    default:
      return step(*world_.one_of(ranks_));
  }
}

bool RootlessJob::move_message() {
  const auto messages = world_.mpi.deliverable();
  if (messages.empty()) return false;
  const std::size_t one = world_.one_of(messages);
  const bool is_slow =
      world_.mpi.sender(one) == slow_link_.first && world_.mpi.receiver(one) == slow_link_.second;
  if (is_slow && world_.pick(100) != 0) return false;
  world_.mpi.deliver(one);
  return true;
}

bool RootlessJob::move_in_group() {
  if (world_.groups.empty()) return false;
  fake::ReducingGroup& group = world_.groups.back();
  const auto stopping = group.stopping();
  if (!stopping.empty() && world_.pick(4) == 0) {
    group.end_stop(world_.one_of(stopping), world_.random);
    return true;
  }
  if (is_silent_) return false;
  const auto up = group.contributing(), down = group.receiving();
  const bool goes_up = down.empty() || (!up.empty() && world_.pick(2) == 0);
  if (goes_up && up.empty()) return false;
  if (goes_up)
    group.move_contribution(world_.one_of(up));
  else
    group.move_result(world_.one_of(down));
  return true;
}

bool RootlessJob::move_set_up() {
  if (world_.set_ups.empty()) return false;
  auto& [call, last] = *world_.set_ups.rbegin();
  const auto all = static_cast<std::size_t>(plan_.ranks);
  if (last.here.size() < all || last.informed.size() == all) return false;
  if (!last.outcome) {
    const bool is_ready = refusals_ == 0;
    if (is_ready)
      world_.groups.emplace_back(plan_.ranks);
    else
      --refusals_;
    is_silent_ = false;
    failing_.clear();
    world_.trace("set-up at call ", call, is_ready ? " is ready" : " is refused");
    last.outcome = {is_ready, call + 1 + static_cast<std::uint64_t>(world_.pick(5))};
    last.informed.insert(0);
    return true;
  }
  const int next = world_.pick(plan_.ranks);
  if (plan_.has_slow_set_up && next == plan_.ranks - 1 && world_.pick(100) != 0) return false;
  return last.informed.insert(next).second;
}

fake::ReducingGroup* RootlessJob::whole_group() {
  if (world_.groups.empty() || world_.groups.back().is_over()) return nullptr;
  return &world_.groups.back();
}

void RootlessJob::inject_due() {
  if (reconnect_at_ && outcome_.events >= *reconnect_at_ && !world_.groups.empty()) {
    reconnect_at_.reset();
    world_.groups.back().reconnect();
  }
  const bool is_fault_due =
      plan_.is_at_end ? std::ranges::any_of(ranks_, [](auto& each) { return each->has_ended; })
                      : outcome_.events >= plan_.event;
  if (!is_injected_ && is_fault_due) {
    if (plan_.fault != GroupFault::kBroadcasts && plan_.fault != GroupFault::kDeath &&
        whole_group() == nullptr)
      return;
    is_injected_ = true;
    groups_with_faults_ = world_.groups.size();
    inject(plan_.fault);
  }
  const bool dies_now = is_injected_ && plan_.dies_later && !world_.dead;
  if (dies_now && world_.pick(150) == 0) inject(GroupFault::kDeath);
  const bool is_due = is_injected_ && more_faults_ > 0 && whole_group() != nullptr &&
                      world_.groups.size() > groups_with_faults_;
  if (is_due && world_.pick(200) == 0) {
    --more_faults_;
    groups_with_faults_ = world_.groups.size();
    constexpr GroupFault kFaults[] = {GroupFault::kFailed, GroupFault::kSilent,
                                      GroupFault::kDisconnected, GroupFault::kDeaf,
                                      GroupFault::kMute};
    inject(kFaults[world_.pick(5)]);
  }
}

void RootlessJob::inject(GroupFault fault) {
  const int victim = world_.pick(plan_.ranks);
  world_.trace("fault ", name(fault), ", rank ", victim);
  switch (fault) {
    case GroupFault::kFailed:
      for (int i = 0; i < plan_.ranks; ++i) failing_.push_back(i);
      std::ranges::shuffle(failing_, world_.random);
      break;
    case GroupFault::kSilent:
      is_silent_ = true;
      break;
    case GroupFault::kDisconnected:
      world_.groups.back().disconnect(victim);
      if (world_.pick(2) == 0) reconnect_at_ = outcome_.events + kEventsDisconnected;
      break;
    case GroupFault::kDeaf:
      if (world_.pick(4) != 0) return world_.groups.back().deafen(victim);
      for (int i = 0; i < plan_.ranks; ++i) world_.groups.back().deafen(i);
      break;
    case GroupFault::kMute:
      world_.groups.back().mute(victim);
      break;
    case GroupFault::kBroadcasts:
      for (const auto& rank : ranks_) rank->member.note_failed_broadcasts();
      break;
    case GroupFault::kDeath:
      died_at_ = outcome_.events;
      world_.dead = victim;
      world_.mpi.kill(victim);
      break;
    case GroupFault::kNone:
    case GroupFault::kRefused:
    case GroupFault::kCount:
      break;
  }
}

// A group fails end by end. The last one shows it, if no other has. The switch ends the group of a
// dead member.
void RootlessJob::fail_ends() {
  fake::ReducingGroup* const group = whole_group();
  if (group == nullptr) return;
  if (world_.dead && world_.pick(300) == 0) {
    const int end = world_.pick(plan_.ranks);
    if (end != *world_.dead) group->fail(end, true);
  }
  if (failing_.empty() || world_.pick(10) != 0) return;
  const int end = failing_.back();
  failing_.pop_back();
  group->fail(end, failing_.empty() || world_.pick(3) == 0);
}

void RootlessJob::fire_watchdog() {
  fake::ReducingGroup* const group = whole_group();
  if (group == nullptr || world_.pick(8) != 0) return;
  std::vector<int> stalled = group->stalled();
  if (is_silent_)
    for (const auto& each : ranks_) stalled.push_back(each->rank);
  if (!stalled.empty()) group->fail(world_.one_of(stalled), true);
}

// The host notices a dead rank where an operation with it is under way, and perhaps elsewhere.
void RootlessJob::report_death() {
  if (!world_.dead || !plan_.returns_errors || world_.pick(100) != 0) return;
  world_.is_death_reported = true;
  world_.mpi.fail_operations_with_the_dead();
  Rank& rank = *world_.one_of(ranks_);
  if (!is_alive(rank)) return;
  if (rank.member.agreement().awaits(*world_.dead) || plan_.is_death_known)
    rank.member.lose(*world_.dead);
}

// --- A rank's program.

bool RootlessJob::step(Rank& rank) {
  if (!is_alive(rank) || rank.is_gone) return false;
  if (rank.rank == slow_rank_ && world_.pick(8) != 0) return false;
  if (!rank.is_waiting) {  // it may compute outside MPI
    if (world_.pick(3) == 0 || outcome_.events < rank.absent_until) return false;
    if (plan_.has_absences && world_.pick(30) == 0)
      rank.absent_until = outcome_.events + static_cast<std::uint64_t>(world_.pick(800));
  }
  const bool has_begun = !rank.is_waiting && world_.pick(3) != 0 && begin(rank);
  // A completion right behind a look at the NIC waits for the next one.
  rank.nic_waits = !rank.nic_waits && world_.pick(2) == 0;
  std::vector<ReducingMember::Ended> ended;
  rank.member.progress(now_, !rank.nic_waits, ended);
  for (const auto& each : ended) end(rank, each);
  leave(rank);
  return has_begun || !ended.empty();
}

bool RootlessJob::begin(Rank& rank) {
  if (rank.at == plan_.program.size()) return false;
  const Collective& next = plan_.program[rank.at];
  if (next.kind == Collective::Kind::kBroadcast) {
    // Its root leaves at once, the others once the root has come.
    std::size_t& there = broadcasts_[rank.at];
    if (rank.rank != next.root && there == 0 && !world_.dead) return false;
    there += rank.rank == next.root ? 1 : 0;
    rank.member.note_broadcast();
    ++rank.at;
    return true;
  }
  if (rank.member.in_flight() >= plan_.most_in_flight) return false;
  rank.member.begin(rank.at++);
  rank.is_waiting = next.is_blocking;
  return true;
}

void RootlessJob::end(Rank& rank, const ReducingMember::Ended& ended) {
  rank.how += static_cast<char>(ended.how);
  check_end(rank, ended);
  if (rank.is_waiting && rank.member.in_flight() == 0) rank.is_waiting = false;
  ended_at_ = outcome_.events;
}

void RootlessJob::leave(Rank& rank) {
  if (rank.at < plan_.program.size() || rank.member.in_flight() > 0) return;
  rank.has_ended = true;
  rank.member.close();
  if (!rank.member.agreement().is_finished()) return;
  rank.is_ready = true;
  // The leader's message that all are ready takes a while.
  rank.is_gone = world_.pick(10) == 0 && std::ranges::all_of(ranks_, [&](const auto& each) {
                   return !is_alive(*each) || each->is_ready;
                 });
}

bool RootlessJob::is_over() const {
  return std::ranges::all_of(ranks_,
                             [&](const auto& each) { return !is_alive(*each) || each->is_gone; });
}

}  // namespace cepheus::coll::sim
