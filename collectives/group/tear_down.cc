#include "collectives/group/tear_down.h"

#include "collectives/core/rules.h"

namespace cepheus::coll {

// A message that can't be sent or received (the job is coming down) is not waited for.
bool TearDown::progress(bool is_ready) {
  if (!rules.release_after_all) return is_ready;
  Code error = Code::kDone;
  if (state_ == State::kDraining && is_ready) {
    bytes_.assign(static_cast<std::size_t>(team_.is_leader() ? team_.size() : 1), 0);
    if (team_.is_leader()) {
      for (int member = 1; member < team_.size(); ++member)
        (void)messages_.receive(&bytes_[static_cast<std::size_t>(member)], 1, member, Tag::kDone,
                                team_);
    } else {
      (void)messages_.send(&bytes_[0], 1, Team::kLeader, Tag::kDone, team_);
    }
    state_ = State::kGathering;
  }
  if (state_ == State::kGathering && messages_.test(error)) {
    if (team_.is_leader()) {
      for (int member = 1; member < team_.size(); ++member)
        (void)messages_.send(&bytes_[0], 1, member, Tag::kRelease, team_);
    } else {
      (void)messages_.receive(&bytes_[0], 1, Team::kLeader, Tag::kRelease, team_);
    }
    state_ = State::kReleasing;
  }
  if (state_ == State::kReleasing && messages_.test(error)) state_ = State::kDone;
  return state_ == State::kDone;
}

}  // namespace cepheus::coll
