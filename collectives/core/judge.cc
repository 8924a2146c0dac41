// judge() maps the finished plan and its times to the next plan. First comparisons double their
// samples (continue_first). Then come a pause, in plans that report the present way alone (rest),
// and the next comparison. A void report restarts the first comparisons, or leads to the next
// pause. Equal reports give equal plans: there is no clock and no random number.
#include "collectives/core/judge.h"

#include <algorithm>

#include "wire/situation.h"

namespace cepheus::coll {

bool Judge::takes_longer(double times) const {
  return static_cast<double>(network_ns()) > times * static_cast<double>(other_ns());
}

bool Judge::speaks_against(Way way) const {
  return way == Way::kNetwork ? takes_longer(1 + limits_.threshold) : network_ns() < other_ns();
}

Plan Judge::judge(const Plan& plan, const Times& times) {
  const Way way = plan.way;
  pause_.spend(plan.samples);
  const bool lacks_samples = plan.samples > 0 && times.samples == Times::kNone;
  if (times.is_void() || lacks_samples) {
    CEPHEUS_SITUATION("a comparison of two ways is void");
    if (plan.samples == 0) return rest(way);
    tried_ = is_first() ? 0 : tried_;
    is_doubted_ = false;
    return pause(way);
  }
  if (times.own != Times::kNone) times_[way] = times.own;
  // Compares the last report with new samples.
  if (plan.samples == 0) {
    if (!speaks_against(way)) return rest(way);
    CEPHEUS_RARE_SITUATION("the present way alone has become slow");
    return {way, is_first() ? 2u : 0, next_samples()};
  }
  times_[other(way)] = times.samples;
  ++comparisons_;
  if (is_first()) return continue_first(way, plan.samples - 1);
  if (!speaks_against(way)) {
    if (is_doubted_) CEPHEUS_RARE_SITUATION("a second comparison dispels the doubt of the first");
    is_doubted_ = false;
    return pause(way);
  }
  const bool is_clear = way == Way::kNetwork && takes_longer(2 * (1 + limits_.threshold));
  const bool is_enough = is_doubted_ || is_clear;
  if (!is_enough) CEPHEUS_SITUATION("one comparison speaks against the present way");
  if (way == Way::kOther && is_enough) CEPHEUS_RARE_SITUATION("the network serves a size again");
  is_doubted_ = !is_enough;
  return is_enough ? pause(other(way)) : compare(way);
}

Plan Judge::continue_first(Way way, std::uint32_t timed) {
  tried_ += timed;
  if (tried_ > 1 && takes_longer(std::max(kHopeless / tried_, 1 + limits_.threshold))) {
    tried_ = kFirst;
    return pause(other(way));
  }
  return is_first() ? Plan{way, tried_, tried_ + 1, true} : compare(way);
}

Plan Judge::pause(Way way) {
  pause_.begin(times_, way, next_samples());
  return rest(way);
}

}  // namespace cepheus::coll
