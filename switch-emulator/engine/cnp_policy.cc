#include "switch-emulator/engine/cnp_policy.h"

#include <algorithm>

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

bool WorstPathCnps::passes(Instant now, PathNo path) {
  const std::int64_t periods = (now - aged_) / period_;
  if (periods > 0) {
    aged_ += periods * period_;
    const int halvings = static_cast<int>(std::min<std::int64_t>(periods, 16));
    for (std::uint16_t& c : counts_) c = static_cast<std::uint16_t>(c >> halvings);
  }
  count(path);
  // Of two with as many the one that was chosen stays.
  const bool is_worse =
      chosen_ == kNoPath || counts_[chosen_] == 0 || counts_[path] > counts_[chosen_];
  if (is_worse) chosen_ = path;
  return path == chosen_;
}

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
