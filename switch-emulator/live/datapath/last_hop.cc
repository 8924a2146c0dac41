// States: open, paused, lost. take() delivers or lets a frame wait with a reference of its own; an
// open link becomes paused at kPauseAt. look() delivers what waits and counts the client's reads;
// time without a look counts as kLongestLook at most.
//
// A lost client's frames go to deliver(), which drops and counts them at a full ring. When a client
// leaves, its waiting frames are counted as drops.
#include "switch-emulator/live/datapath/last_hop.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace cepheus::live {

bool LastHop::take(const wire::Frame& frame, fabric::SenderNo sender, wire::Instant now) {
  if (is_lost_) is_lost_ = port_.unread() >= kResumeAt;
  if (is_lost_ || !port_.is_open()) return port_.deliver(frame, sender, now);
  if (!waiting_.is_empty() || !port_.try_deliver(frame, sender)) {
    assert(frame.external == nullptr || frame.ref != wire::kNoBuffer);
    if (frame.ref != wire::kNoBuffer) pools_.hold(frame.ref);
    waiting_.push({frame, sender});
  }
  if (is_paused_ || !is_full(kPauseAt)) return true;
  is_paused_ = true;
  read_ = port_.reclaimed();
  waited_ = {};
  last_look_ = now;
  return true;
}

void LastHop::look(wire::Instant now) {
  port_.reclaim();
  while (!waiting_.is_empty() &&
         port_.try_deliver(waiting_.front().frame, waiting_.front().sender)) {
    remove_first();
  }
  waited_ += std::min(now - std::exchange(last_look_, now), kLongestLook);
  if (port_.reclaimed() - read_ >= kLeastRead) {
    read_ = port_.reclaimed();
    waited_ = {};
  }
  is_paused_ = is_full(kResumeAt);
  if (is_paused_ && waited_ > kReadLimit) give_up(now);
}

void LastHop::give_up(wire::Instant now) {
  is_lost_ = true;
  is_paused_ = false;
  for (; !waiting_.is_empty(); remove_first()) {
    port_.deliver(waiting_.front().frame, waiting_.front().sender, now);  // counts the drop
  }
}

void LastHop::clear() {
  port_.count(fabric::PortCounter::kDropNoClient, waiting_.size());
  while (!waiting_.is_empty()) remove_first();
  is_paused_ = is_lost_ = false;
}

void LastHop::remove_first() {
  const wire::BufferRef ref = waiting_.front().frame.ref;
  if (ref != wire::kNoBuffer) pools_.drop(ref);
  waiting_.pop();
}

}  // namespace cepheus::live
