// Each window takes the steps of its row in kPaths, from open() to close(). A step that fails loses
// the window's data: later steps still run, and the ranks below get the error instead of the data.
//
// close() ends the broadcast if the leaders' group refused it or the ranks' calls differ. Any other
// error is kept for the end, because other ranks need this one in the windows that follow. Memory:
// one window, and one byte for the verdict.
#include "collectives/hosts_broadcast.h"

#include <algorithm>
#include <utility>

#include "collectives/multicast.h"

namespace cepheus::coll {

using Otherwise = TeamBroadcast::Otherwise;

// By the role, and whether the window is the first of a blocking broadcast.
const HostsBroadcast::Path HostsBroadcast::kPaths[3][2] = {
    // kRootLeads
    {{{Step::kAcross, Step::kSpread}, Otherwise::kTree},
     {{Step::kDecide, Step::kAcross, Step::kSpread}, Otherwise::kSavedFunction}},
    // kOtherHost
    {{{Step::kAcross, Step::kSpread}, Otherwise::kTree},
     {{Step::kDecide, Step::kAcross, Step::kSpread}, Otherwise::kTree}},
    // kCollects
    {{{Step::kCollect, Step::kAcross}, Otherwise::kTree},
     {{Step::kDecide, Step::kCollect, Step::kAcross}, Otherwise::kTree}},
};

const HostsBroadcast::Path& HostsBroadcast::path() const {
  return kPaths[static_cast<std::size_t>(role_)][blocking_ && done_ == 0 ? 1 : 0];
}

void HostsBroadcast::begin(Payload& payload, int root, bool blocking) {
  payload_ = &payload;
  source_host_ = hosts_.host_of[static_cast<std::size_t>(root)];
  source_inside_ = hosts_.inside.member_of(root);
  is_root_ = host::rank(hosts_.inside.comm()) == root;
  role_ = hosts_.leaders.rank_of(source_host_) == root ? Role::kRootLeads
          : source_inside_ < 0                         ? Role::kOtherHost
                                                       : Role::kCollects;
  const bool small = Multicast::is_small(std::min(Multicast::unit_bytes(false), payload.bytes()));
  serves_ = &hosts_.serving[small ? 1 : 0];
  blocking_ = blocking;
  done_ = length_ = 0;
  error_ = Code::kDone;
  finish_inside();
  is_across_ = is_point_to_point_ = false;
  window_.reset();
  verdict_.reset();
  reason_ = "multicast among one rank of each host";
}

void HostsBroadcast::open() {
  at_ = 0;
  length_ = std::min(Multicast::unit_bytes(false), payload_->bytes() - done_);
  void* const memory = payload_->window(done_, length_);
  window_.emplace(memory, length_);
  if (memory == nullptr) lose_data(Code::kNoMemory);
  if (is_root_ && !payload_->contiguous()) lose_data(payload_->pack(done_, memory, length_));
}

// This rank has no data of the window. The ranks below it get the error.
void HostsBroadcast::lose_data(Code rc) {
  if (rc == Code::kDone || (error_ != Code::kDone && rc != Code::kNotServed)) return;
  error_ = rc;
  window_->lose_data(rc);
  window_->fail(rc);
}

Code HostsBroadcast::inside(Payload& payload, int root) {
  if (hosts_.inside.size() == 1) return Code::kDone;
  if (!is_inside_) {
    tree_.begin({&hosts_.inside, root, 0, 0, &payload, 0, payload.bytes(), !blocking_});
    is_inside_ = true;
  }
  const Code rc = tree_.progress();
  if (rc == Code::kPending) return rc;
  finish_inside();
  return rc == Code::kDone ? payload.error() : rc;
}

void HostsBroadcast::finish_inside() {
  tree_.finish();
  is_inside_ = false;
}

void HostsBroadcast::start_across() {
  across_.begin({multicast_, "", *window_, source_host_, blocking_, path().otherwise});
  is_across_ = true;
}

// Decides, on all ranks, if the leaders' group serves it.
Code HostsBroadcast::decide() {
  if (*serves_) return Code::kDone;
  if (!verdict_) {
    Code rc = Code::kDone;
    if (multicast_ != nullptr) {
      if (!is_across_) start_across();
      rc = across_.ready();
      if (rc == Code::kPending) return rc;
      if (rc != Code::kDone) is_across_ = false;
    }
    verdict_.emplace(&verdict_byte_, 1);
    verdict_->lose_data(rc);
    if (rc != Code::kDone && hosts_.inside.size() == 1) return rc;
  }
  const Code rc = inside(*verdict_, 0);
  if (rc == Code::kDone) *serves_ = true;
  return rc;
}

Code HostsBroadcast::across() {
  if (multicast_ == nullptr) return Code::kDone;
  if (!is_across_) start_across();
  Code rc = across_.progress();
  if (rc == Code::kPending) return rc;
  if (rc == Code::kDone) rc = window_->error();
  if (across_.route() == Route::kTree) {
    is_point_to_point_ = true;
    reason_.assign("point to point among one rank of each host: ").append(across_.reason());
  }
  is_across_ = false;
  return rc;
}

Code HostsBroadcast::close() {
  if (!is_root_ && error_ == Code::kDone)
    payload_->unpack(done_, window_->window(0, length_), length_);
  window_.reset();
  done_ += length_;
  if (error_ == Code::kNotServed) {
    *serves_ = false;
    reason_ = "the group of the hosts' leaders does not serve it";
  }
  if (error_ == Code::kNotServed || is_mistake(error_)) return error_;
  // The other ranks may have the data: they need this one for the windows that follow.
  payload_->fail(std::exchange(error_, Code::kDone));
  return Code::kDone;
}

Code HostsBroadcast::run(Step step) {
  switch (step) {
    case Step::kDecide:
      return decide();
    case Step::kCollect:
      return inside(*window_, source_inside_);
    case Step::kAcross:
      return across();
    case Step::kSpread:
      return inside(*window_, 0);
    case Step::kClose:
      return close();
  }
  return Code::kDone;
}

Code HostsBroadcast::progress() {
  while (done_ < payload_->bytes()) {
    if (!window_) open();
    const Step step = path().steps[at_];
    const Code rc = run(step);
    const bool is_closed = !window_;
    if (rc == Code::kPending || (is_closed && rc != Code::kDone)) return rc;
    if (is_closed) continue;
    lose_data(rc);
    const bool is_refused = step == Step::kDecide && rc != Code::kDone;
    at_ = is_refused ? path().steps.size() - 1 : at_ + 1;
  }
  return Code::kDone;
}

}  // namespace cepheus::coll
