// States: idle; gathering times from the ranks below; waiting for the plan from above. Each rank
// merges the slowest times and sends them up, rank 0 judges, and the plan goes down the same tree.
// An error of the host's messages ends this broadcast with it, and the next one begins anew.
//
// A time counts only if the broadcast took the chosen way; otherwise the whole comparison is void.
// Size classes are kept for the communicator's life. Each change of a way is logged at level 1.
#include "collectives/safeguard.h"

#include "collectives/core/parameters.h"
#include "collectives/core/rules.h"
#include "collectives/core/tree.h"
#include "collectives/group/clock.h"

namespace cepheus::coll {

namespace {

FanIn tree_of(const Team& team) { return {{team.self(), team.size(), Team::kLeader}}; }

}  // namespace

Safeguard::Class& Safeguard::of(const SizeClass& sizes) {
  const auto known = classes_.find(sizes);
  if (known != classes_.end()) return *known;
  const Judge::Limits limits = parameters().safeguard_limits();
  return *classes_.emplace(sizes, Compared{Comparison(Judge::first_plan()), Judge(limits)}).first;
}

Code Safeguard::choose(std::size_t bytes, bool blocking, Way& way) {
  way = Way::kMulticast;
  if (!parameters().is_safeguarded()) return Code::kDone;
  Class& sizes = of({bytes, blocking});
  Comparison& comparison = sizes.second.comparison;
  if (comparison.is_due()) {
    const Code rc = agree(sizes);
    if (rc != Code::kDone) return rc;
  }
  turn_ = comparison.next();
  current_ = &sizes;
  if (turn_.is_timed) began_ = Clock::now();
  way = turn_.way;
  return Code::kDone;
}

const std::string& Safeguard::reason() const {
  static const std::string kFaster =
      "faster than multicast for these sizes (" + host::parameter("safeguard_threshold") + ")";
  static const std::string kSample =
      "a sample, to be compared with multicast (" + host::parameter("safeguard_samples") + ")";
  return turn_.is_sample ? kSample : kFaster;
}

void Safeguard::end(std::optional<Route> route) {
  Class* const sizes = std::exchange(current_, nullptr);
  if (sizes == nullptr || !turn_.is_timed) return;
  Comparison& comparison = sizes->second.comparison;
  const bool is_saved = route == Route::kSaved || route == Route::kTree;
  if (route && is_saved == (turn_.way == Way::kSaved))
    comparison.end(turn_, Clock::now() - began_);
  else
    comparison.discard(turn_);
}

// --- Messages between the ranks.

Code Safeguard::agree(Class& sizes) {
  Code rc = step_ == Step::kIdle ? listen() : Code::kDone;
  if (rc == Code::kDone && step_ == Step::kGather) rc = report(sizes);
  bool has_plan = true;
  if (rc == Code::kDone && step_ == Step::kWait) {
    has_plan = incoming_.test(rc);
    if (!has_plan && rules.plan_is_awaited) return Code::kPending;
  }
  if (rc == Code::kPending) return rc;
  step_ = Step::kIdle;
  if (rc != Code::kDone || !has_plan) {
    incoming_.forget();
    return rc;
  }
  sizes.second.comparison.follow(plan_);
  return send_plan();
}

Code Safeguard::listen() {
  Code rc = Code::kDone;
  std::size_t children = 0;
  const FanIn tree = tree_of(team_);
  tree.children([&](int) { ++children; });
  received_.resize(children);
  std::size_t i = 0;
  tree.children([&](int child) {
    if (rc == Code::kDone)
      rc = incoming_.receive(&received_[i++], sizeof(Times), child, Tag::kTimes, team_);
  });
  step_ = Step::kGather;
  return rc;
}

// The leader judges; any other rank reports.
Code Safeguard::report(Class& sizes) {
  Code error = Code::kDone;
  if (!incoming_.test(error)) {
    if (rules.times_of_all) return Code::kPending;
    incoming_.forget();
  }
  if (error != Code::kDone) return error;
  if (!outgoing_.test(error)) outgoing_.forget();  // of the last time: copies
  Times times = sizes.second.comparison.times();
  for (const Times& each : received_) times.take_slower(each);
  step_ = Step::kWait;
  if (team_.is_leader()) {
    judge(sizes, times);
    return Code::kDone;
  }
  const int parent = tree_of(team_).parent();
  const Code rc = outgoing_.send(&times, sizeof times, parent, Tag::kTimes, team_);
  return rc == Code::kDone ? incoming_.receive(&plan_, sizeof plan_, parent, Tag::kPlan, team_)
                           : rc;
}

void Safeguard::judge(Class& sizes, const Times& times) {
  Judge& judge = sizes.second.judge;
  const Plan before = sizes.second.comparison.plan();
  plan_ = judge.judge(before, times);
  if (judge.comparisons() == 0) return;
  judgement_ = {sizes.first, plan_.way, judge.multicast_ns(), judge.saved_ns(),
                judge.comparisons()};
  if (plan_.way == before.way) return;
  host::log(1, "cepheus: %s: broadcasts %s %s: one takes %.1f us by multicast, %.1f us by %s",
            team_.name().c_str(), to_text(sizes.first).c_str(),
            plan_.way == Way::kSaved ? "are no longer multicast" : "are multicast again",
            static_cast<double>(judge.multicast_ns()) / 1e3,
            static_cast<double>(judge.saved_ns()) / 1e3, judgement_->other_way());
}

Code Safeguard::send_plan() {
  Code rc = Code::kDone;
  tree_of(team_).children([&](int child) {
    if (rc == Code::kDone) rc = outgoing_.send(&plan_, sizeof plan_, child, Tag::kPlan, team_);
  });
  return rc;
}

}  // namespace cepheus::coll
