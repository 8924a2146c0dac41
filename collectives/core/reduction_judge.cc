// judge() maps the finished plan and its times to the next plan. A comparison's plans follow each
// other until it has an outcome. Then come a pause, in plans that report the present way alone, and
// the next comparison. If such a report speaks against the present way, a comparison comes at once. A
// void report ends a comparison without an outcome.
//
// Bounds: a comparison has at most most() timed calls of each way. A comparison that a report has
// caused makes the pause longer, and no report counts in the first half of that pause.
#include "collectives/core/reduction_judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "wire/situation.h"

namespace cepheus::coll {

namespace {

constexpr double kErrors = 2;  // standard errors that a difference must exceed

}  // namespace

void ReductionJudge::Sums::add(std::int64_t mean, double error) {
  const auto value = static_cast<double>(mean);
  means += value;
  squares += value * value;
  errors += error;
}

// Waits come in bursts. Then the plans differ by more than the errors inside them tell.
double ReductionJudge::Sums::error(double plans) const {
  const double inside = errors / (plans * plans);
  if (plans < 2) return inside;
  return std::max(inside, (squares - means * means / plans) / (plans - 1) / plans);
}

Plan ReductionJudge::judge(const Plan& plan, const Times& times) {
  const Way way = plan.way;
  pause_.spend(plan.samples);
  const bool lacks_times =
      plan.samples > 0 && (times.own == Times::kNone || times.samples == Times::kNone);
  if (times.is_void() || lacks_times) {
    CEPHEUS_SITUATION("a comparison of two ways of reductions is void");
    if (plan.samples == 0) return rest(way);
    forget();
    is_doubted_ = false;
    return pause(way);
  }
  if (plan.samples > 0) {
    add(plan, times);
    return end(way);
  }
  if (times.own != Times::kNone) {
    times_[way] = times.own;
    error_of(way) = times.own_error;
  }
  if (pause_.left() > counted_below_ || !takes_longer(way, kErrors)) return rest(way);
  CEPHEUS_RARE_SITUATION("the present way of reductions alone has become slow");
  is_suspect_ = true;
  return compare(way);
}

void ReductionJudge::add(const Plan& plan, const Times& times) {
  own_.add(times.own, times.own_error);
  samples_.add(times.samples, times.samples_error);
  ++plans_;
  const Way way = plan.way;
  times_[way] = static_cast<std::int64_t>(own_.mean(plans_));
  error_of(way) = own_.error(plans_);
  times_[other(way)] = static_cast<std::int64_t>(samples_.mean(plans_));
  error_of(other(way)) = samples_.error(plans_);
}

void ReductionJudge::forget() {
  plans_ = 0;
  own_ = samples_ = {};
}

// `way`, than the other one: by more than the threshold, and `errors` standard errors.
bool ReductionJudge::takes_longer(Way way, double errors) const {
  const auto network = static_cast<double>(network_ns()), others = static_cast<double>(other_ns());
  const double allowed = way == Way::kNetwork ? 1 + limits_.threshold : 1;
  const double difference = network - allowed * others;
  const double error = std::sqrt(network_error_ + allowed * allowed * other_error_);
  return (way == Way::kNetwork ? difference : -difference) > errors * error;
}

// If waits hide the difference for ever, the network serves.
bool ReductionJudge::speaks_against(Way way) const {
  if (timed() < least(way)) return false;
  return takes_longer(way, way == Way::kOther && timed() >= most() ? 0 : kErrors);
}

Plan ReductionJudge::end(Way way) {
  const bool is_against = speaks_against(way), is_longer = takes_longer(way, 0);
  if (!is_against && timed() < (is_longer ? most() : enough())) return compare(way);
  ++comparisons_;
  forget();
  if (is_against && !std::exchange(is_doubted_, true)) {
    CEPHEUS_SITUATION("one comparison speaks against the present way of reductions");
    return compare(way);
  }
  if (!is_against && is_longer) CEPHEUS_RARE_SITUATION("a comparison of reductions is undecided");
  if (!is_against && is_doubted_)
    CEPHEUS_RARE_SITUATION("a second comparison of reductions dispels the doubt of the first");
  if (is_against && way == Way::kOther) CEPHEUS_RARE_SITUATION("the network reduces a size again");
  is_doubted_ = false;
  is_suspect_ = is_suspect_ && !is_against;
  return pause(is_against ? other(way) : way);
}

Plan ReductionJudge::compare(Way way) {
  return {way, irregular() + calls(limits_), calls(limits_)};
}

Plan ReductionJudge::pause(Way way) {
  const bool was_suspect = std::exchange(is_suspect_, false);
  const std::uint32_t before = was_suspect ? pause_.left() : 0;
  pause_.begin(times_, way, calls(limits_), before + irregular());
  counted_below_ = was_suspect ? pause_.left() / 2 : pause_.left();
  return rest(way);
}

// From none to twice the timed calls of a plan, mixed as in SplitMix64.
std::uint32_t ReductionJudge::irregular() {
  std::uint64_t mixed = ++drawn_ * 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::uint32_t>((mixed >> 32) % (2 * timed(limits_) + 1));
}

}  // namespace cepheus::coll
