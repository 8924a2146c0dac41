// The invariants of a simulated job of reductions, and its seeds.
#include <algorithm>
#include <deque>
#include <functional>

#include "collectives/sim/rootless_job.h"
#include "collectives/sim/rule_off.h"

namespace cepheus::coll::sim {

RootlessOutcome& RootlessOutcome::operator+=(const RootlessOutcome& other) {
  events += other.events;
  by_group += other.by_group;
  by_host += other.by_host;
  errors += other.errors;
  copied += other.copied;
  failovers += other.failovers;
  returns += other.returns;
  lost += other.lost;
  return *this;
}

void RootlessJob::fail(const std::string& text) {
  if (!outcome_.failure) outcome_.failure = text;
}

// From the inputs alone. The halves of a pairwise reduction: the left one has the largest power of
// two of ranks.
Bytes RootlessJob::expected(std::size_t index, int rank) const {
  const Collective& call = plan_.program[index];
  Bytes out;
  const std::function<std::byte(int, int, std::size_t)> reduced = [&](int first, int count,
                                                                      std::size_t at) {
    if (count == 1) return input_byte(index, first, at);
    int half = 1;
    while (2 * half < count) half *= 2;
    return reduce(reduced(first, half, at), reduced(first + half, count - half, at));
  };
  switch (call.kind) {
    case Collective::Kind::kReduce:
      if (rank != call.root) break;
      [[fallthrough]];
    case Collective::Kind::kAllreduce:
      for (std::size_t at = 0; at < call.bytes; ++at) out.push_back(reduced(0, plan_.ranks, at));
      break;
    case Collective::Kind::kAllgather:
      for (int from = 0; from < plan_.ranks; ++from)
        for (std::size_t at = 0; at < call.bytes; ++at) out.push_back(input_byte(index, from, at));
      break;
    case Collective::Kind::kSum:
      for (std::size_t at = 0; at < call.bytes; ++at) {
        unsigned sum = 0;
        for (int from = 0; from < plan_.ranks; ++from)
          sum += std::to_integer<unsigned>(input_byte(index, from, at));
        out.push_back(static_cast<std::byte>(sum));
      }
      break;
    case Collective::Kind::kBarrier:
    case Collective::Kind::kBroadcast:
      break;
  }
  return out;
}

void RootlessJob::check_end(const Rank& rank, const ReducingMember::Ended& ended) {
  using How = ReducingMember::How;
  const std::string where =
      "rank " + std::to_string(rank.rank) + ", call " + std::to_string(ended.index);
  world_.trace(where, " ends: ", static_cast<char>(ended.how));
  ++(ended.how == How::kGroup  ? outcome_.by_group
     : ended.how == How::kHost ? outcome_.by_host
                               : outcome_.errors);
  if (ended.how != How::kGroup && !world_.groups.empty() &&
      world_.groups.back().may_write(rank.rank))
    fail("memory: " + where + " ends while its NIC may write results");
  if (ended.how == How::kError) {
    if (!world_.dead) fail("error: " + where + ": " + rank.member.agreement().reason());
    return;
  }
  if (std::ranges::any_of(ranks_, [&](const auto& each) { return each->at <= ended.index; }))
    fail("begun: " + where + " ends before all ranks have begun it");
  if (ended.output != expected(ended.index, rank.rank))
    fail("data: " + where + " has a wrong result");
}

void RootlessJob::check_end_of_job() {
  check_paths();
  for (const auto& rank : ranks_) outcome_.copied += rank->member.copied();
  const RootlessAgreement& first = ranks_.front()->member.agreement();
  const bool has_failed =
      first.generation() > 1 ||
      (first.generation() == 1 && first.stage() != RootlessAgreement::Stage::kWhole);
  outcome_.failovers = has_failed ? 1 : 0;
  outcome_.returns = first.generation() > 1 ? 1 : 0;
  outcome_.lost = has_failed && first.cause() == Cause::kLost ? 1 : 0;
  if (outcome_.failure || world_.dead) return;
  if (plan_.is_healthy() && has_failed)
    fail("failover: a group without a fault is given up: " + first.reason());
  int left = 0;
  for (const auto& rank : ranks_) {
    left += rank->member.failover_messages();
    const bool is_served = rank->member.agreement().stage() == RootlessAgreement::Stage::kNoGroup;
    if (is_served && rank->member.keeps_results())
      fail("kept: rank " + std::to_string(rank->rank) + " keeps results that no rank needs");
  }
  if (left != 0) fail("residue: " + std::to_string(left) + " messages of a failover are left");
}

// A call ends in an error only at the ranks that have noticed a death.
void RootlessJob::check_paths() {
  constexpr char kError = static_cast<char>(ReducingMember::How::kError);
  for (const auto& one : ranks_) {
    for (const auto& other : ranks_) {
      const std::size_t both = std::min(one->how.size(), other->how.size());
      for (std::size_t i = 0; i < both; ++i) {
        const bool is_error = one->how[i] == kError || other->how[i] == kError;
        if (one->how[i] != other->how[i] && !is_error)
          return fail("path: ranks " + std::to_string(one->rank) + " and " +
                      std::to_string(other->rank) + " take different ways in reduction " +
                      std::to_string(i));
      }
    }
  }
}

const std::vector<std::string> kRootlessRules = {
#define CEPHEUS_RULE(name, help) #name,
#include "collectives/core/rootless_rules.def"
};

RootlessOutcome run_rootless_seed(std::uint64_t seed, const std::vector<std::string>& off,
                                  bool traces) {
  const std::deque<RuleOff> rules_off(off.begin(), off.end());
  return RootlessJob(make_rootless_plan(seed), traces).run();
}

}  // namespace cepheus::coll::sim
