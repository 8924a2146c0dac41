#include "ompi-coll/team_broadcast.h"

#include <algorithm>

#include "ompi-coll/tree_operation.h"

namespace cepheus::coll {

TeamBroadcast::TeamBroadcast(const Team& team, Multicast* multicast, const std::string& why,
                             Payload& payload, int root, bool attended, Otherwise otherwise)
    : team_(team),
      multicast_(multicast),
      payload_(payload),
      root_(root),
      attended_(attended),
      otherwise_(otherwise),
      small_(Multicast::is_small(payload.bytes())),
      path_(multicast != nullptr ? Path::kUndecided : Path::kOther),
      reason_(why) {}

// When its turn has come: every member chooses the same, because all units before it have been
// settled here.
int TeamBroadcast::decide() {
  if (!has_units_) {
    unit_ = multicast_->take_units(payload_.bytes());
    has_units_ = true;
  }
  const int rc = multicast_->prepare(unit_, small_, root_);
  if (rc == OMPI_ERR_NOT_AVAILABLE) {
    path_ = Path::kOther;
    reason_ = multicast_->reason();
    return OMPI_SUCCESS;
  }
  if (rc == OMPI_SUCCESS) {
    path_ = Path::kMulticast;
    reason_ = multicast_->reason();
  }
  if (rc != OMPI_ERR_WOULD_BLOCK) return rc;
  const Call call = next_call();
  const int looked = small_ ? rc : multicast_->look_for_mistake(call);
  return looked != rc ? looked : multicast_->check(call, call.is_root() && !small_);
}

Call TeamBroadcast::next_call() const {
  const bool fabric = path_ == Path::kMulticast;
  const std::size_t most = fabric ? Multicast::unit_bytes(small_) : BulkOperation::most_bytes();
  return {&team_,
          root_,
          unit_,
          fabric ? multicast_->retry_after() : 0,
          &payload_,
          done_,
          std::min(most, payload_.bytes() - done_),
          !attended_};
}

int TeamBroadcast::run() {
  const Call call = next_call();
  if (path_ == Path::kOther) {
    if (operation_ == nullptr) operation_ = std::make_unique<TreeOperation>(call);
    Actions none;
    return operation_->progress(none);
  }
  if (operation_ == nullptr) operation_ = multicast_->make_operation(call, small_);
  const int rc = multicast_->run(*operation_);
  if (rc == OMPI_SUCCESS && !small_ && attended_ && call.is_root())
    multicast_->note_speed(call, static_cast<BulkOperation&>(*operation_));
  return rc;
}

int TeamBroadcast::end() {
  if (operation_ != nullptr && !operation_->end()) return OMPI_ERR_WOULD_BLOCK;
  operation_.reset();
  return error_;
}

int TeamBroadcast::ready() {
  const int rc = path_ == Path::kUndecided ? decide() : OMPI_SUCCESS;
  return rc == OMPI_SUCCESS && path_ == Path::kOther ? OMPI_ERR_NOT_AVAILABLE : rc;
}

int TeamBroadcast::progress() {
  if (error_ != OMPI_SUCCESS) return end();
  if (path_ == Path::kUndecided) {
    const int rc = decide();
    if (rc != OMPI_SUCCESS) return rc;
  }
  while (done_ < payload_.bytes()) {
    if (route() == Route::kSaved) return OMPI_ERR_NOT_AVAILABLE;
    const std::size_t length = next_call().length;
    int rc = run();
    if (rc == OMPI_ERR_WOULD_BLOCK && path_ == Path::kMulticast)
      rc = multicast_->check(next_call(), operation_->awaits_members());
    if (rc == OMPI_ERR_WOULD_BLOCK) return rc;
    if (rc != OMPI_SUCCESS && rc != OMPI_ERR_NOT_AVAILABLE) {
      error_ = rc == Messages::kEmpty ? MPI_ERR_TRUNCATE : rc;  // MPI knows no kEmpty
      return end();
    }
    operation_.reset();
    if (rc == OMPI_ERR_NOT_AVAILABLE) {
      // Unfolds at the unit that the cut names, on all members alike.
      path_ = Path::kOther;
      reason_ = multicast_->breach();
      continue;
    }
    done_ += length;
    ++unit_;
  }
  return OMPI_SUCCESS;
}

Route TeamBroadcast::route() const {
  if (path_ == Path::kMulticast) return small_ ? Route::kEager : Route::kBulk;
  return otherwise_ == Otherwise::kTree || done_ > 0 ? Route::kTree : Route::kSaved;
}

}  // namespace cepheus::coll
