// A binomial tree, point to point, in segments, so that a rank passes on one while it receives the
// next. All receives are posted at the start, and each gets a message in any case: a rank that
// can't pass data on sends an empty message for each missing segment, and then the reason. So no
// segment of this unit is taken for one of the next unit, and all ranks below fail with the same
// code.
#include "collectives/units/tree_operation.h"

#include "collectives/core/rules.h"
#include "collectives/group/gpu_runtime.h"
#include "wire/situation.h"

namespace cepheus::coll {

namespace {

// A rank without memory for its data receives it here, so that no message is left for the next
// broadcast. Open MPI 4.1 writes a large message beyond the end of a smaller receive.
std::byte dropped[TreeOperation::kMostSegment];

}  // namespace

std::byte* TreeOperation::memory(size_t index) const {
  return window_ == nullptr ? dropped : static_cast<std::byte*>(window_) + index * segment();
}

void TreeOperation::begin(const Call& call) {
  call_ = call;
  started_ = false;
  here_ = 0;
  is_refused_ = false;
  refusal_ = unsent_ = Code::kDone;
}

void TreeOperation::finish() {
  for (Messages& each : receives_) each.forget();
  sends_.forget();
  reason_.forget();
}

Code TreeOperation::start() {
  started_ = true;
  window_ = call_.payload->window(call_.offset, call_.length);
  is_on_device_ = call_.payload->contiguous() && !host::knows_device_memory() && has_gpu_runtime();
  if (call_.is_root()) {
    Payload& payload = *call_.payload;
    const Code rc =
        payload.contiguous() ? Code::kDone : payload.pack(call_.offset, window_, call_.length);
    return rc == Code::kDone ? rc : refuse(rc);
  }
  while (receives_.size() < segments()) receives_.emplace_back();
  Code rc = Code::kDone;
  for (size_t i = 0; i < segments() && rc == Code::kDone; ++i) {
    rc = receives_[i].receive(memory(i), segment_bytes(i), Tree{position_of(call_)}.parent(),
                              Tag::kTree, *call_.team);
  }
  return rc;
}

// A child may be gone: the others get all segments of all units. Else they would take those of a
// later broadcast for the missing ones.
void TreeOperation::send(const void* data, size_t size, int child, Tag tag, bool as_is) {
  note_unsent(sends_.send(data, size, child, tag, *call_.team, as_is));
}

void TreeOperation::note_unsent(Code rc) {
  if (rc != Code::kDone) CEPHEUS_SITUATION("a message down a tree can't be sent");
  if (unsent_ == Code::kDone) unsent_ = rc;
}

Code TreeOperation::pass_on() {
  Tree{position_of(call_)}.children([&](int child) {
    send(memory(here_), segment_bytes(here_), child, Tag::kTree, is_on_device_);
  });
  ++here_;
  return Code::kDone;
}

// The ranks below get an empty message for each missing segment, and then the reason `why`. So each
// posted receive has its message, and none takes a message of the next unit.
Code TreeOperation::refuse(Code why) {
  CEPHEUS_SITUATION("a rank can't pass on a tree's data");
  refusal_ = why;
  const size_t lacking = segments() - here_;
  here_ = segments();
  Tree{position_of(call_)}.children([&](int child) {
    for (size_t i = 0; i < lacking; ++i) send(nullptr, 0, child, Tag::kTree);
    send(&refusal_, sizeof refusal_, child, Tag::kRefusal);
  });
  return Code::kDone;
}

// The next segment, or the reason why none comes.
Code TreeOperation::take() {
  Code error = Code::kDone;
  if (is_refused_) {
    if (!reason_.test(error)) return Code::kPending;
    return refuse(error == Code::kDone ? refusal_ : error);
  }
  if (!receives_[here_].test(error)) return Code::kPending;
  if (error == Code::kDone) return window_ != nullptr ? pass_on() : refuse(Code::kNoMemory);
  if (error != Code::kEmpty) return refuse(error);
  is_refused_ = true;
  return reason_.receive(&refusal_, sizeof refusal_, Tree{position_of(call_)}.parent(),
                         Tag::kRefusal, *call_.team);
}

// After an error, too: messages from the parent still use this rank's memory.
bool TreeOperation::has_received_all() {
  Code error = Code::kDone;
  return std::ranges::all_of(receives_, [&](Messages& each) { return each.test(error); });
}

Code TreeOperation::progress() {
  Code rc = started_ ? Code::kDone : start();
  while (rc == Code::kDone && here_ < segments()) rc = call_.is_root() ? pass_on() : take();
  if (rc != Code::kDone) return rc;
  Code error = Code::kDone;
  const bool has_sent = sends_.test(error) || !rules.sends_are_awaited;
  if (!has_sent || !has_received_all()) return Code::kPending;
  note_unsent(error);
  if (refusal_ == Code::kTruncated)
    return refusal_;  // counts differ: there may be no next unit here
  if (refusal_ != Code::kDone)
    call_.payload->fail(refusal_);
  else if (!call_.is_root())
    call_.payload->unpack(call_.offset, window_, call_.length);
  if (unsent_ != Code::kDone) call_.payload->fail(unsent_);
  return Code::kDone;
}

}  // namespace cepheus::coll
