#include "collectives/group/tear_down.h"

#include <algorithm>

#include "collectives/core/rules.h"

namespace cepheus::coll {

// A message that can't be sent or received (the job is coming down) is not waited for.
bool TearDown::progress(bool is_drained, bool may_leave) {
  if (!rules.release_after_all) return is_drained;
  Code error = Code::kDone;
  if (state_ == State::kDraining && is_drained) {
    flags_.assign(static_cast<std::size_t>(team_.size()), 0);
    flags_.front() = may_leave ? 1 : 0;
    if (team_.is_leader()) {
      for (int member = 1; member < team_.size(); ++member)
        (void)messages_.receive(&flags_[static_cast<std::size_t>(member)], 1, member, Tag::kDone,
                                team_);
    } else {
      (void)messages_.send(&flags_[0], 1, Team::kLeader, Tag::kDone, team_);
    }
    state_ = State::kGathering;
  }
  if (state_ == State::kGathering && messages_.test(error)) {
    if (team_.is_leader()) {
      const bool is_whole = error == Code::kDone;  // else a member is gone
      flags_[0] = is_whole ? *std::max_element(flags_.begin(), flags_.end()) : char{0};
      for (int member = 1; member < team_.size(); ++member)
        (void)messages_.send(&flags_[0], 1, member, Tag::kRelease, team_);
    } else {
      flags_[0] = 0;
      (void)messages_.receive(&flags_[0], 1, Team::kLeader, Tag::kRelease, team_);
    }
    state_ = State::kReleasing;
  }
  if (state_ == State::kReleasing && messages_.test(error)) state_ = State::kDone;
  return state_ == State::kDone;
}

}  // namespace cepheus::coll
