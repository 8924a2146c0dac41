#include "switch-emulator/engine/group/cnp_selector.h"

#include <algorithm>

#include "net/units.h"
#include "wire/situation.h"

namespace cepheus::fabric {

bool CountedCnps::is_passing(PathNo path, PathNo source) const {
  if (chosen_ != source) return path == chosen_;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (i != path && i != source && counts_[i] >= counts_[path]) return false;
  }
  return true;
}

void CountedCnps::on_path_removed(PathNo gone, PathNo last) {
  counts_[gone] = counts_[last];
  counts_.pop_back();
  if (chosen_ == gone) {
    CEPHEUS_RARE_SITUATION("the worst congested path leaves its group");
    chosen_ = kNoPath;
  } else if (chosen_ == last) {
    chosen_ = gone;
  }
}

std::size_t CountedCnps::table_bytes() const {
  return counts_.size() * sizeof(counts_[0]) + sizeof(chosen_) + sizeof(Instant);
}

std::string WorstPathCnps::to_text() const {
  return "worst-path, windows of " + net::to_text(least_) + " or more";
}

std::size_t WorstPathCnps::table_bytes() const {
  return CountedCnps::table_bytes() + sizeof(silence_) + sizeof(gap_) + sizeof(began_);
}

bool WorstPathCnps::passes(Instant now, PathNo path, PathNo source) {
  const Duration silence = now - passed_;
  if (chosen_ == kNoPath) {
    begin(now, least_, path);
  } else if (silence > silence_) {
    // On a slow link CNPs are that far apart, but never by more than kLongest.
    begin(now, std::min(silence, std::max(least_, kLongest)), path);
  }
  count(path);
  const bool is_passed = is_passing(path, source);
  if (is_passed) {
    gap_ = std::max(gap_, at_most(now - passed_));
    passed_ = now;
  }
  const Duration window = now - began_;
  if (window < least_ || counts_[path] < kEnough) return is_passed;
  const auto worst = std::max_element(counts_.begin(), counts_.end());
  // Of two equal paths the chosen one stays. The gaps of the other are not known.
  const bool is_worse = *worst > counts_[chosen_];
  begin(now, is_worse ? window / 2 : std::min<Duration>(window / 2, 2 * Duration(gap_)),
        is_worse ? static_cast<PathNo>(worst - counts_.begin()) : chosen_);
  return is_passed;
}

WorstPathCnps::Microseconds WorstPathCnps::at_most(Duration time) {
  return std::chrono::duration_cast<Microseconds>(std::min<Duration>(time, Microseconds::max()));
}

void WorstPathCnps::begin(Instant now, Duration silence, PathNo chosen) {
  if (chosen != chosen_) passed_ = now;
  silence_ = at_most(silence);
  gap_ = {};
  began_ = now;
  chosen_ = chosen;
  std::fill(counts_.begin(), counts_.end(), std::uint16_t{0});
}

std::string SlottedCnps::to_text() const { return "tmcf, slots of " + net::to_text(slot_); }

bool SlottedCnps::passes(Instant now, PathNo path, PathNo source) {
  if (now - last_ >= std::max(slot_, kQuiet)) {
    chosen_ = kNoPath;
    std::fill(counts_.begin(), counts_.end(), std::uint16_t{0});
  } else if (now.time_since_epoch() / slot_ != last_.time_since_epoch() / slot_) {
    choose();
  }
  last_ = now;
  count(path);
  if (chosen_ == kNoPath) chosen_ = path;  // otherwise the first slot would slow no source down
  return is_passing(path, source);
}

// By the counts of the finished slot.
void SlottedCnps::choose() {
  const auto worst = std::max_element(counts_.begin(), counts_.end());
  const bool any = worst != counts_.end() && *worst > 0;
  if (any && (chosen_ == kNoPath || *worst > counts_[chosen_])) {
    chosen_ = static_cast<PathNo>(worst - counts_.begin());
  }
  std::fill(counts_.begin(), counts_.end(), std::uint16_t{0});
}

std::unique_ptr<CnpSelector> make_cnp_selector(net::CnpPolicy policy, Duration window) {
  switch (policy) {
    case net::CnpPolicy::kAll:
      break;
    case net::CnpPolicy::kWorstPath:
      return std::make_unique<WorstPathCnps>(window);
    case net::CnpPolicy::kTmcf:
      return std::make_unique<SlottedCnps>(window);
  }
  return std::make_unique<AllCnps>();
}

}  // namespace cepheus::fabric
