// The members post the user's own buffer, in pieces of at most `most_in_piece_` bytes, kPosted at
// once. Then they report that they are ready, and the root sends (README.md, docs/architecture.md
// "Lanes"):
//
//   root    kPost -> kListen -> kGather -> kSend -> kTransfer     blocking
//           kPost -> kListen -> kSend -> kGather -> kTransfer     non-blocking: the NIC waits
//   member  kPost -> kListen -> kGather -> kReport -> kTransfer
//
// Reports carry the unit's number. An older one is of a unit that went another way, and is skipped.
// Pieces end in order, so the first `complete_` of them are whole after a failure. A member then
// sends LACK with that number of bytes, and the root sends the rest point to point.
#include "collectives/units/bulk_operation.h"

#include <mcast/recovery.h>

#include "collectives/core/counters.h"
#include "collectives/core/rules.h"
#include "collectives/core/spare_time.h"
#include "collectives/group/clock.h"
#include "wire/situation.h"

namespace cepheus::coll {

template <typename F>
void BulkOperation::ready_children(F f) const {
  if (!call_.non_blocking) return FanIn{position_of(call_)}.children(f);
  if (!call_.is_root()) return;
  for (int rank = 0; rank < call_.team->size(); ++rank) {
    if (rank != call_.root) f(rank);
  }
}

// Receives remain posted here only after an error of the program. They must not outlive the
// buffers, and no later receive can be posted behind them.
void BulkOperation::finish() {
  if (in_flight_ > 0) {
    CEPHEUS_SITUATION("a large broadcast ends with receives posted");
    lane_->destroy();
    session_->agreement().fail(Cause::kWork,
                               rank_text(*call_.team) + ": a broadcast ended in an error");
  }
  if (!is_whole_) {
    may_have_reported_.resize(static_cast<size_t>(call_.team->size()));
    ready_children([&](int rank) { may_have_reported_[static_cast<size_t>(rank)] = true; });
  }
  messages_.forget();
  repairs_.forget();
}

void BulkOperation::begin(const Call& call, Session& session) {
  Operation::begin(call, session);
  lane_ = &session.bulk();
  failed_ = mistaken_ = wrong_length_ = requested_ = is_whole_ = false;
  step_ = Step::kPost;
  started_ = complete_ = in_flight_ = 0;
  const size_t most = parameters().bulk_piece;
  const size_t least = (most_bytes() >> kPieceBits) + 1;
  most_in_piece_ = lane_->portion() == 0 ? most : std::max(least, std::min(most, lane_->portion()));
  list_.resize(std::max(list_.size(), std::min(pieces(), kPosted)));
  ready_.clear();
}

int BulkOperation::ready_parent() const {
  return call_.non_blocking ? call_.root : FanIn{position_of(call_)}.parent();
}

// A piece could not be posted: the queue is full, the group has failed, or the memory can't be
// registered.
Code BulkOperation::refused(Channel::Status status) {
  if (status != Channel::Status::kFull) {
    const std::string why = mcast_last_error();
    session_->look();
    session_->agreement().fail(Cause::kWork, rank_text(*call_.team) + ": " + why);
  }
  return Code::kPending;
}

void BulkOperation::ended(Transfer* transfer, Transfer::Result result, size_t length) {
  static_cast<BulkOperation*>(transfer->owner)
      ->ended(*reinterpret_cast<Piece*>(transfer), result, length);
}

void BulkOperation::ended(const Piece& piece, Transfer::Result result, size_t length) {
  --in_flight_;
  const bool is_done = result == Transfer::Result::kDone;
  if (is_done && piece.index == complete_) ++complete_;
  if (is_done && !call_.is_root() && length != piece_bytes(piece.index)) wrong_length_ = true;
  failed_ = failed_ || result == Transfer::Result::kFailed;
  mistaken_ = mistaken_ || result == Transfer::Result::kMistaken;
}

void BulkOperation::enter() {
  window_ = call_.payload->window(call_.offset, call_.length);
  if (window_ == nullptr && !call_.is_root()) {
    session_->agreement().fail(Cause::kWork,
                               rank_text(*call_.team) + ": no memory to receive a broadcast");
  }
}

Code BulkOperation::gone() {
  if (window_ != nullptr) return Operation::gone();
  call_.payload->fail(Code::kNoMemory);
  return Code::kDone;
}

void BulkOperation::fill() {
  if (!call_.is_root() && !call_.payload->contiguous())
    call_.payload->unpack(call_.offset, window_, call_.length);
}

Code BulkOperation::run() {
  for (;;) {
    Code rc = Code::kDone;
    switch (step_) {
      case Step::kPost:
        rc = pack_or_post();
        break;
      case Step::kListen:
        rc = listen();
        break;
      case Step::kGather:
        rc = gather();
        break;
      case Step::kReport:
        rc = report();
        break;
      case Step::kSend:
        rc = send();
        break;
      case Step::kTransfer:
        return transfer();
    }
    if (rc != Code::kDone) return rc;
  }
}

// Receivers post their buffer before they report that they are ready.
Code BulkOperation::pack_or_post() {
  if (call_.is_root()) {
    Payload& payload = *call_.payload;
    if (!payload.contiguous() && payload.pack(call_.offset, window_, call_.length) != Code::kDone)
      return unreadable();
  } else if (const Code rc = post(); rc != Code::kDone) {
    return rc;
  }
  step_ = Step::kListen;
  return Code::kDone;
}

// Sends or receives as many pieces as may be under way. Code::kPending: one could not be posted.
Code BulkOperation::post() {
  std::lock_guard<std::mutex> guard(Transport::instance().mutex());
  Channel& channel = lane_->channel();
  for (; started_ < pieces() && in_flight_ < list_.size() && !failed_ && !mistaken_; ++started_) {
    Piece& piece = list_[started_ % list_.size()];
    piece.index = started_;
    piece.transfer.owner = this;
    piece.transfer.done = &BulkOperation::ended;
    std::byte* const data = memory() + started_ * most_in_piece_;
    const size_t length = piece_bytes(started_);
    const Channel::Status status =
        call_.is_root() ? channel.send(data, length, tag(started_), piece.transfer)
                        : channel.receive(data, length, tag(started_), piece.transfer);
    if (status != Channel::Status::kStarted) return refused(status);
    ++in_flight_;
    if (call_.is_root()) session_->agreement().mark_sent();
  }
  return Code::kDone;
}

Code BulkOperation::listen() {
  ready_children([&](int rank) { ready_.push_back({rank, 0}); });
  Code rc = Code::kDone;
  for (Ready& each : ready_) {
    if (rc == Code::kDone)
      rc = messages_.receive(&each.unit, sizeof each.unit, each.rank, Tag::kReady, *call_.team);
  }
  step_ = call_.non_blocking && call_.is_root() ? Step::kSend : Step::kGather;
  return rc;
}

Code BulkOperation::gather() {
  if (call_.is_root() && call_.non_blocking) (void)post();
  Code error = Code::kDone;
  if (!messages_.test(error)) return Code::kPending;
  if (error != Code::kDone) return error;
  Code rc = Code::kDone;
  bool stale = false;
  for (Ready& each : ready_) {
    if (each.unit > call_.unit) return fail_call("ranks disagree on the order of broadcasts");
    if (each.unit == call_.unit || rc != Code::kDone) continue;
    // Said before a unit that then went another way.
    CEPHEUS_RARE_SITUATION("a report of readiness is for an earlier unit");
    stale = true;
    rc = messages_.receive(&each.unit, sizeof each.unit, each.rank, Tag::kReady, *call_.team);
  }
  if (rc != Code::kDone) return rc;
  if (stale) return Code::kPending;
  if (call_.is_root() && call_.non_blocking) {
    (void)mcast_group_set_watchdog(lane_->group(), 1);
    step_ = Step::kTransfer;
    return Code::kDone;
  }
  if (call_.is_root()) {
    sending_since_ = Clock::now();
    step_ = Step::kSend;
    return Code::kDone;
  }
  ready_out_ = call_.unit;
  step_ = Step::kReport;
  return messages_.send(&ready_out_, sizeof ready_out_, ready_parent(), Tag::kReady, *call_.team);
}

Code BulkOperation::report() {
  Code error = Code::kDone;
  if (!messages_.test(error)) return Code::kPending;
  sending_since_ = Clock::now();
  step_ = Step::kTransfer;
  return error;
}

Code BulkOperation::send() {
  // No member is known to be ready yet.
  if (call_.non_blocking && rules.watchdog_waits) (void)mcast_group_set_watchdog(lane_->group(), 0);
  const Code rc = post();
  if (in_flight_ == 0 && started_ < pieces()) return rc;
  step_ = call_.non_blocking ? Step::kGather : Step::kTransfer;
  return Code::kDone;
}

Code BulkOperation::transfer() {
  if (const Code rc = post(); rc != Code::kDone && !mistaken_) return rc;
  std::lock_guard<std::mutex> guard(Transport::instance().mutex());
  if (mistaken_) return fail_call("ranks disagree on the order or the roots of broadcasts");
  // Any other failure is the session's to notice.
  if (in_flight_ > 0 || failed_ || started_ < pieces()) return Code::kPending;
  if (wrong_length_) return Code::kTruncated;
  is_whole_ = true;
  return Code::kDone;
}

std::chrono::nanoseconds BulkOperation::spare_time() const {
  if (step_ != Step::kTransfer) return {};
  return SpareTime::of(call_.length, Clock::now() - sending_since_);
}

Code BulkOperation::repair(Actions& out) {
  if (!call_.is_root()) return repair_member(out);
  Code error = Code::kDone;
  const bool waits = !session_->agreement().is_answered() && rules.root_waits;
  if (!repairs_.test(error) || waits) return Code::kPending;
  return error;
}

Code BulkOperation::repair_member(Actions& out) {
  if (window_ == nullptr) {  // it can take nothing: GONE or a SWITCH_OVER is the answer
    session_->agreement().lack(call_.length, out);
    return Code::kPending;
  }
  if (requested_) {
    Code error = Code::kDone;
    if (!repairs_.test(error)) return Code::kPending;
    if (error == Code::kDone) counters().add(Counters::Which::kRepaired);
    return error;
  }
  const size_t have = complete_bytes();  // the lane is gone: nothing writes there any more
  if (wrong_length_) return Code::kTruncated;
  if (have == call_.length) {
    CEPHEUS_RARE_SITUATION("a group fails, and a large unit has arrived whole");
    return Code::kDone;
  }
  if (have > 0) CEPHEUS_SITUATION("a group fails, and a part of a large unit has arrived");
  requested_ = true;
  const Code rc =
      repairs_.receive(memory() + have, call_.length - have, call_.root, Tag::kRepair, *call_.team);
  if (rc != Code::kDone) return rc;
  session_->agreement().lack(have, out);
  return Code::kPending;
}

Code BulkOperation::serve(int to, uint64_t bytes) {
  if (bytes >= call_.length) return Code::kNotServed;
  counters().add(Counters::Which::kServed);
  return repairs_.send(memory() + bytes, call_.length - bytes, to, Tag::kRepair, *call_.team);
}

}  // namespace cepheus::coll
