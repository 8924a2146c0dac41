// The path is decided when the broadcast has its turn: multicast, or the other way. Multicast goes
// unit by unit; at a switch-over all members take the tree for the rest. A blocking broadcast takes
// the saved function if no unit has been multicast.
//
// The units of a broadcast are numbered even if the other way serves it, so all members keep
// counting alike. An error of a unit ends the broadcast at once.
#include "collectives/team_broadcast.h"

#include <algorithm>
#include <utility>

#include "collectives/multicast.h"
#include "collectives/units/operation.h"

namespace cepheus::coll {

void TeamBroadcast::begin(const Arguments& arguments) {
  finish_unit();
  multicast_ = arguments.multicast;
  payload_ = &arguments.payload;
  root_ = arguments.root;
  blocking_ = arguments.blocking;
  otherwise_ = arguments.otherwise;
  small_ = Multicast::is_small(payload_->bytes());
  path_ = multicast_ != nullptr ? Path::kUndecided : Path::kOther;
  has_units_ = false;
  unit_ = 0;
  done_ = 0;
  reason_ = arguments.why;
}

// When its turn has come: every member chooses the same, because all units before it are
// complete here.
Code TeamBroadcast::decide() {
  if (!has_units_) {
    unit_ = multicast_->take_units(payload_->bytes());
    has_units_ = true;
  }
  const Code rc = multicast_->prepare(unit_, small_);
  if (rc == Code::kNotServed) {
    path_ = Path::kOther;
    reason_ = multicast_->reason();
    return Code::kDone;
  }
  if (rc == Code::kDone) {
    path_ = Path::kMulticast;
    reason_ = multicast_->reason();
  }
  return rc;
}

Call TeamBroadcast::next_call() const {
  const bool fabric = path_ == Path::kMulticast;
  const std::size_t most = Multicast::unit_bytes(fabric && small_);
  return {&team_,
          root_,
          unit_,
          fabric ? multicast_->retry_after() : 0,
          payload_,
          done_,
          std::min(most, payload_->bytes() - done_),
          !blocking_};
}

Code TeamBroadcast::run() {
  const bool begins = !std::exchange(has_begun_, true);
  if (path_ == Path::kOther) {
    if (begins) tree_.begin(next_call());
    return tree_.progress();
  }
  if (begins) operation_ = &multicast_->begin(next_call(), small_);
  return multicast_->run(*operation_);
}

void TeamBroadcast::finish_unit() {
  if (operation_ != nullptr)
    operation_->finish();
  else if (has_begun_)
    tree_.finish();
  operation_ = nullptr;
  has_begun_ = false;
}

std::chrono::nanoseconds TeamBroadcast::spare_time() const {
  return operation_ != nullptr ? operation_->spare_time() : std::chrono::nanoseconds(0);
}

Code TeamBroadcast::ready() {
  const Code rc = path_ == Path::kUndecided ? decide() : Code::kDone;
  return rc == Code::kDone && path_ == Path::kOther ? Code::kNotServed : rc;
}

Code TeamBroadcast::progress() {
  if (path_ == Path::kUndecided) {
    const Code rc = decide();
    if (rc != Code::kDone) return rc;
  }
  while (done_ < payload_->bytes()) {
    if (route() == Route::kSaved) return Code::kNotServed;
    const std::size_t length = next_call().length;
    const Code rc = run();
    if (rc == Code::kPending) return rc;
    if (rc != Code::kDone && rc != Code::kNotServed) {
      finish_unit();
      return rc == Code::kEmpty ? Code::kTruncated : rc;  // MPI knows no empty ones
    }
    finish_unit();
    if (rc == Code::kNotServed) {
      // All members take the other path at the unit of the switch-over.
      path_ = Path::kOther;
      reason_ = multicast_->failure();
      continue;
    }
    done_ += length;
    ++unit_;
  }
  return Code::kDone;
}

Route TeamBroadcast::route() const {
  if (path_ == Path::kMulticast) return small_ ? Route::kEager : Route::kBulk;
  return otherwise_ == Otherwise::kTree || done_ > 0 ? Route::kTree : Route::kSaved;
}

}  // namespace cepheus::coll
