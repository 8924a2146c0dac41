// A round begins once all messages of the last one are complete: later rounds write what they have read.
#include "collectives/units/pairwise_operation.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "collectives/core/parameters.h"

namespace cepheus::coll {

void PairwiseOperation::begin(const Vector& vector) {
  finish();
  vector_ = vector;
  rounds_.emplace(team_.self(), team_.size(), vector.elements);
  round_ = 0;
  chunk_ = std::max<std::size_t>(1, parameters().reduction_chunk / vector.element);
  chunk_ = std::min(chunk_, std::max<std::size_t>(1, vector.elements));
}

void PairwiseOperation::finish() {
  if (sends_.under_way() + receives_.under_way() > 0) abandon_scratch();
  for (Flow* flow : {&sends_, &receives_}) {
    for (Messages& each : flow->messages) each.forget();
    flow->transfers.clear();
    flow->at = flow->offset = flow->started = flow->complete = 0;
  }
  is_in_round_ = false;
}

// MPI can't cancel a message that has a partner: it may use this memory as long as the process lives.
void PairwiseOperation::abandon_scratch() {
  static std::mutex one_at_a_time;
  static auto* const abandoned = new std::vector<std::unique_ptr<std::byte[]>>;
  const std::lock_guard<std::mutex> guard(one_at_a_time);
  abandoned->push_back(std::move(scratch_));
  scratch_bytes_ = 0;
}

// False: there is none.
bool PairwiseOperation::start_round() {
  if (round_ == rounds_->count()) return false;
  rounds_->plan(round_, sends_.transfers, receives_.transfers);
  for (Flow* flow : {&sends_, &receives_})
    flow->at = flow->offset = flow->started = flow->complete = 0;
  return is_in_round_ = true;
}

PairTransfer PairwiseOperation::next_chunk(const Flow& flow) const {
  const PairTransfer& transfer = flow.transfers[flow.at];
  const std::size_t first = transfer.slice.first + flow.offset;
  return {transfer.peer, {first, std::min(first + chunk_, transfer.slice.end)}};
}

void PairwiseOperation::Flow::start(const PairTransfer& chunk) {
  chunks[started++ % kUnderWay] = chunk;
  offset += chunk.slice.size();
  if (chunk.slice.end < transfers[at].slice.end) return;
  ++at;
  offset = 0;
}

bool PairwiseOperation::reserve() {
  const std::size_t bytes = 2 * kUnderWay * chunk_bytes();
  if (scratch_bytes_ >= bytes) return true;
  scratch_.reset(new (std::nothrow) std::byte[bytes]);
  scratch_bytes_ = scratch_ != nullptr ? bytes : 0;
  return scratch_ != nullptr;
}

Code PairwiseOperation::start_sends() {
  Flow& flow = sends_;
  while (!flow.is_all_started() && flow.under_way() < kUnderWay) {
    const PairTransfer chunk = next_chunk(flow);
    const std::size_t bytes = chunk.slice.size() * vector_.element;
    std::byte* const copy = outgoing(flow.started);
    std::memcpy(copy, at(chunk.slice.first), bytes);
    failed_member_ = chunk.peer;
    const Code rc = flow.messages[flow.started % kUnderWay].send(copy, bytes, chunk.peer,
                                                                 Tag::kPairs, team_, true);
    if (rc != Code::kDone) return rc;
    flow.start(chunk);
  }
  return Code::kDone;
}

Code PairwiseOperation::start_receives() {
  Flow& flow = receives_;
  while (!flow.is_all_started() && flow.under_way() < kUnderWay) {
    const PairTransfer chunk = next_chunk(flow);
    const std::size_t message = flow.started % kUnderWay;
    failed_member_ = chunk.peer;
    const Code rc = flow.messages[message].receive(
        incoming(message), chunk.slice.size() * vector_.element, chunk.peer, Tag::kPairs, team_);
    if (rc != Code::kDone) return rc;
    flow.start(chunk);
  }
  return Code::kDone;
}

// Ends the messages under way in their order: `end` takes each one's number and outcome.
template <typename End>
Code PairwiseOperation::end_messages(Flow& flow, End end) {
  for (; flow.under_way() > 0; ++flow.complete) {
    const std::size_t message = flow.complete % kUnderWay;
    Code rc = Code::kDone;
    if (!flow.messages[message].test(rc)) return Code::kPending;
    failed_member_ = flow.chunks[message].peer;
    rc = end(message, rc);
    if (rc != Code::kDone) return rc;
  }
  return Code::kDone;
}

Code PairwiseOperation::end_sends() {
  return end_messages(sends_, [this](std::size_t, Code rc) {
    if (rc != Code::kDone) send_failure(failed_member_);  // the chunk may be lost
    return rc;
  });
}

Code PairwiseOperation::end_receives() {
  return end_messages(receives_, [this](std::size_t message, Code rc) {
    return rc == Code::kDone ? take(receives_.chunks[message], incoming(message)) : rc;
  });
}

// The library's operations are commutative, bit by bit. Another one's result lies in the right operand's
// memory.
Code PairwiseOperation::take(const PairTransfer& chunk, std::byte* from) {
  std::byte* const own = at(chunk.slice.first);
  const std::size_t bytes = chunk.slice.size() * vector_.element;
  if (!rounds_->combines(round_)) {
    std::memcpy(own, from, bytes);
    return Code::kDone;
  }
  if (vector_.combiner) {
    arithmetic::Batch(*vector_.combiner)
        .combine(reinterpret_cast<std::uint8_t*>(own), reinterpret_cast<const std::uint8_t*>(from),
                 bytes);
    return Code::kDone;
  }
  if (!rounds_->is_left(round_)) return vector_.op->apply(from, own, chunk.slice.size());
  const Code rc = vector_.op->apply(own, from, chunk.slice.size());
  std::memcpy(own, from, bytes);
  return rc;
}

// Code::kDone: all its messages are complete.
Code PairwiseOperation::run_round() {
  while (!sends_.is_over() || !receives_.is_over()) {
    const std::size_t before = sends_.complete + receives_.complete;
    for (const auto step : {&PairwiseOperation::start_receives, &PairwiseOperation::start_sends,
                            &PairwiseOperation::end_receives, &PairwiseOperation::end_sends}) {
      const Code rc = (this->*step)();
      if (rc != Code::kDone && rc != Code::kPending) return rc;
    }
    if (sends_.complete + receives_.complete == before) return Code::kPending;
  }
  return Code::kDone;
}

Code PairwiseOperation::progress() {
  while (is_in_round_ || start_round()) {
    const Code rc = reserve() ? run_round() : Code::kNoMemory;
    if (rc == Code::kPending) return rc;
    if (rc != Code::kDone) {
      fail();
      return rc;
    }
    is_in_round_ = false;
    ++round_;
  }
  return Code::kDone;
}

void PairwiseOperation::send_failure(int member) const {
  (void)Messages::post(nullptr, 0, member, Tag::kPairs, team_);
}

void PairwiseOperation::fail() {
  const int failed = failed_member_;
  do {
    if (!is_in_round_ && !start_round()) break;
    for (; !sends_.is_all_started(); ++sends_.at) send_failure(sends_.transfers[sends_.at].peer);
    is_in_round_ = false;
    ++round_;
  } while (round_ < rounds_->count());
  finish();
  failed_member_ = failed;
}

}  // namespace cepheus::coll
