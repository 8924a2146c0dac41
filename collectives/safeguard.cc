// States: idle; gathering times from the ranks below; waiting for the plan from above. Each rank
// merges the times that count (core/comparison.h) and sends them up, rank 0 judges, and the plan goes
// down the same tree. An error of the host's messages ends this call with it. After a broadcast's the
// next one begins anew. After a reduction's no agreement follows: this rank sends one failure, in the
// place of the next message, to its parent and to each child. So each neighbour that waits for it,
// now or in a later agreement, learns of that, and does the same. A rank with the plan does the same
// once the reduction behind the agreement was refused; behind another failure of a reduction, in the
// next agreement.
//
// A time counts only if the call took the chosen way; otherwise the whole comparison is void.
// Size classes are kept for the communicator's life. Each change of a way is logged at level 1.
#include "collectives/safeguard.h"

#include "collectives/core/parameters.h"
#include "collectives/core/rules.h"
#include "collectives/core/tree.h"
#include "collectives/group/clock.h"

namespace cepheus::coll {

namespace {

FanIn tree_of(const Team& team) { return {{team.self(), team.size(), Team::kLeader}}; }

std::variant<Judge, ReductionJudge> judge_of(const SizeClass& sizes) {
  const Judge::Limits limits = parameters().safeguard_limits();
  if (sizes.waits_for_all()) return ReductionJudge(limits);
  return Judge(limits);
}

Comparison comparison_of(const SizeClass& sizes) {
  if (!sizes.waits_for_all()) return Comparison(Judge::first_plan());
  return Comparison(ReductionJudge::first_plan(parameters().safeguard_limits()), true);
}

}  // namespace

Safeguard::Compared::Compared(const SizeClass& sizes)
    : judge(judge_of(sizes)), comparison(comparison_of(sizes)) {}

Safeguard::Class& Safeguard::of(const SizeClass& sizes) {
  const auto known = classes_.find(sizes);
  if (known != classes_.end()) return *known;
  return *classes_.emplace(sizes, Compared(sizes)).first;
}

bool Safeguard::is_agreement_due(const SizeClass& sizes) const {
  const auto known = classes_.find(sizes);
  return known != classes_.end() && known->second.comparison.is_due();
}

Code Safeguard::choose(const SizeClass& sizes, Choice& choice) {
  choice = {};
  if (!parameters().is_safeguarded()) return Code::kDone;
  Class& chosen = of(sizes);
  Comparison& comparison = chosen.second.comparison;
  const bool is_reduction = sizes.waits_for_all();
  confirms_ = false;
  if (comparison.is_due() && fails_next_ && !has_failed_) {
    send_failure();
    if (is_reduction) choice.failure = Code::kFailed;
  }
  if (comparison.is_due() && !has_failed_) {
    const Code rc = agree(chosen);
    if (rc == Code::kPending) return rc;
    if (is_reduction) choice.failure = rc;
    if (rc != Code::kDone && !has_failed_) return rc;
    confirms_ = is_reduction && rc == Code::kDone;
  }
  if (is_reduction && has_failed_) return Code::kDone;
  const bool has_plan = !comparison.is_due();
  turn_ = has_plan ? comparison.next() : Comparison::Turn{comparison.plan().way, false, false};
  if (is_confirmed_by_messages(sizes)) turn_.is_timed = false;
  current_ = &chosen;
  if (turn_.is_timed) began_ = Clock::now();
  choice.way = turn_.way;
  choice.confirms = confirms_;
  return Code::kDone;
}

// In the place of the saved function.
bool Safeguard::is_confirmed_by_messages(const SizeClass& sizes) const {
  return confirms_ && turn_.way == Way::kOther && may_be_saved(sizes.collective, sizes.blocking);
}

const std::string& Safeguard::reason() const {
  struct Reasons {
    explicit Reasons(const std::string& network)
        : faster("faster than " + network + " for these sizes (" +
                 host::parameter("safeguard_threshold") + ")"),
          sample("a sample, to be compared with " + network + " (" +
                 host::parameter("safeguard_samples") + ")") {}
    std::string faster, sample;
  };
  static const std::string kConfirms =
      "all ranks have agreed on the way of calls of these sizes, and now show it";
  static const Reasons kOfBroadcasts("multicast"), kOfOthers("the network"),
      kOfMessages("messages between ranks");
  if (current_ != nullptr && is_confirmed_by_messages(current_->first)) return kConfirms;
  const bool is_broadcast = current_ == nullptr || current_->first.collective == Collective::kBcast;
  const Reasons& reasons = is_broadcast                   ? kOfBroadcasts
                           : current_->second.by_messages ? kOfMessages
                                                          : kOfOthers;
  return turn_.is_sample ? reasons.sample : reasons.faster;
}

void Safeguard::end(std::optional<Route> route) {
  Class* const sizes = std::exchange(current_, nullptr);
  if (sizes == nullptr || !turn_.is_timed) return;
  Comparison& comparison = sizes->second.comparison;
  const bool by_messages =
      route == Route::kMessages && may_be_saved(sizes->first.collective, sizes->first.blocking);
  const bool is_other = route == Route::kSaved || route == Route::kTree ||
                        (route == Route::kMessages && !by_messages);
  if (turn_.way == Way::kNetwork) sizes->second.by_messages = by_messages;
  if (route && is_other == (turn_.way == Way::kOther))
    comparison.end(turn_, Clock::now() - began_);
  else
    comparison.discard(turn_);
}

// No rank completes a reduction that was refused. Behind any other failure some may have, and follow
// the plan.
void Safeguard::fail(bool is_refused) {
  const bool is_reduction = current_ != nullptr && current_->first.waits_for_all();
  const bool is_unconfirmed = is_reduction && confirms_ && is_refused;
  end(std::nullopt);
  if (is_unconfirmed && !has_failed_) send_failure();
  fails_next_ = fails_next_ || is_reduction;
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
  if (rc == Code::kDone && has_plan) {
    is_notified_ = plan_.is_failure();
    if (is_notified_) return end_agreement(sizes, Code::kFailed);
    sizes.second.comparison.follow(plan_);
    rc = send_plan();
    if (rc == Code::kDone) return rc;
  }
  return end_agreement(sizes, rc);
}

Code Safeguard::end_agreement(Class& sizes, Code rc) {
  incoming_.forget();
  const bool has_failed = rc != Code::kDone && sizes.first.waits_for_all();
  if (has_failed || is_notified_) send_failure();
  return rc;
}

void Safeguard::send_failure() {
  has_failed_ = true;
  const FanIn tree = tree_of(team_);
  const Times times{Times::kFailed, Times::kFailed};
  constexpr Plan kFailure = Plan::failure();
  if (!team_.is_leader())
    (void)Messages::post(&times, sizeof times, tree.parent(), Tag::kTimes, team_);
  tree.children([&](int child) {
    (void)Messages::post(&kFailure, sizeof kFailure, child, Tag::kPlan, team_);
  });
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
  const bool waits_for_all = sizes.first.waits_for_all();
  for (const Times& each : received_)
    waits_for_all ? times.take_faster(each) : times.take_slower(each);
  is_notified_ = times.has_failed();
  if (is_notified_) return Code::kFailed;
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
  const Plan before = sizes.second.comparison.plan();
  std::visit(
      [&](auto& judge) {
        plan_ = judge.judge(before, times);
        if (judge.comparisons() == 0) return;
        judgement_ = {sizes.first,      plan_.way,           judge.network_ns(),
                      judge.other_ns(), judge.comparisons(), sizes.second.by_messages};
      },
      sizes.second.judge);
  if (plan_.way != before.way && judgement_) log_change();
}

void Safeguard::log_change() const {
  const Judgement& now = *judgement_;
  const bool is_given_up = now.way == Way::kOther;
  const std::string network = now.is_broadcast() || now.by_messages ? now.network() : "the network";
  std::string change = to_text(now.sizes);
  if (now.is_broadcast())
    change = "broadcasts " + change +
             (is_given_up ? " are no longer multicast" : " are multicast again");
  else
    change +=
        (is_given_up ? " no longer uses " : " uses ") + network + (is_given_up ? "" : " again");
  host::log(1, "cepheus: %s: %s: one takes %.1f us by %s, %.1f us by %s", team_.name().c_str(),
            change.c_str(), static_cast<double>(now.network_ns) / 1e3, network.c_str(),
            static_cast<double>(now.other_ns) / 1e3, now.other_way());
}

Code Safeguard::send_plan() {
  Code rc = Code::kDone;
  tree_of(team_).children([&](int child) {
    if (rc == Code::kDone) rc = outgoing_.send(&plan_, sizeof plan_, child, Tag::kPlan, team_);
  });
  return rc;
}

}  // namespace cepheus::coll
