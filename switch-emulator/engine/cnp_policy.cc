#include "switch-emulator/engine/cnp_policy.h"

#include <algorithm>

#include "net/units.h"

namespace cepheus::fabric {

void CountedCnps::on_turn(std::size_t paths) {
  counts_.assign(paths, 0);
  chosen_ = kNoPath;
}

void CountedCnps::on_path_removed(PathNo gone, PathNo last) {
  counts_[gone] = counts_[last];
  counts_.pop_back();
  if (chosen_ == gone) {
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
  return CountedCnps::table_bytes() + sizeof(lasted_) + sizeof(began_);
}

bool WorstPathCnps::passes(Instant now, PathNo path) {
  // A path that is silent for a whole window is congested no more. The window of the next path may
  // need as long: on a slow link CNPs are that far apart, though not by more than kLongest.
  const Duration silence = now - passed_;
  if (chosen_ == kNoPath) {
    begin(now, least_, path);
  } else if (silence > lasted_) {
    begin(now, std::min(silence, std::max(least_, kLongest)), path);
  }
  count(path);
  const bool is_passed = path == chosen_;
  if (is_passed) passed_ = now;
  if (now - began_ < least_ || counts_[path] < kEnough) return is_passed;
  const auto worst = std::max_element(counts_.begin(), counts_.end());
  // Of two with as many the one that was chosen stays.
  const bool is_worse = *worst > counts_[chosen_];
  begin(now, now - began_, is_worse ? static_cast<PathNo>(worst - counts_.begin()) : chosen_);
  return is_passed;
}

void WorstPathCnps::begin(Instant now, Duration last_one, PathNo chosen) {
  lasted_ = last_one;
  began_ = passed_ = now;
  chosen_ = chosen;
  std::fill(counts_.begin(), counts_.end(), std::uint16_t{0});
}

std::string SlottedCnps::to_text() const { return "tmcf, slots of " + net::to_text(slot_); }

bool SlottedCnps::passes(Instant now, PathNo path) {
  if (now - last_ >= std::max(slot_, kCalm)) {
    chosen_ = kNoPath;
    std::fill(counts_.begin(), counts_.end(), std::uint16_t{0});
  } else if (now.time_since_epoch() / slot_ != last_.time_since_epoch() / slot_) {
    choose();
  }
  last_ = now;
  count(path);
  if (chosen_ == kNoPath) chosen_ = path;  // else the first slot would slow nobody down
  return path == chosen_;
}

// By the slot that has ended.
void SlottedCnps::choose() {
  const auto worst = std::max_element(counts_.begin(), counts_.end());
  const bool any = worst != counts_.end() && *worst > 0;
  if (any && (chosen_ == kNoPath || *worst > counts_[chosen_])) {
    chosen_ = static_cast<PathNo>(worst - counts_.begin());
  }
  std::fill(counts_.begin(), counts_.end(), std::uint16_t{0});
}

std::unique_ptr<CnpPolicy> make_cnp_policy(net::CnpPolicy policy, Duration window) {
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
