// The vector of partial results has this rank's data first. The network's results replace it part by
// part, in order; messages go on behind them.
//
// A rank that has failed before still posts its failures in each call: the others wait for it there. With
// a session they need none, because all ranks know.
#include "collectives/long_reducer.h"

#include <new>

namespace cepheus::coll {

namespace {
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;
}  // namespace

std::byte* LongReducer::own_memory() {
  if (memory_bytes_ < shape_.block) {
    memory_.reset(new (std::nothrow) std::byte[shape_.block]);
    memory_bytes_ = memory_ != nullptr ? shape_.block : 0;
  }
  return memory_.get();
}

Code LongReducer::prepare() {
  Payload& result = data_->result;
  const bool has_place = result.bytes() > 0 && result.contiguous();
  vector_ = has_place ? static_cast<std::byte*>(result.window(0, shape_.block)) : own_memory();
  return data_->contribution.pack(0, vector_, shape_.block);
}

std::string_view LongReducer::why_not_networked(const ReductionData& data) const {
  if (may_be_networked(data)) return "";
  if (session_ == nullptr)
    return "some ranks share a host, and long reductions go by messages then";
  if (!data.combiner) return "the switches do not have its operation on its type";
  return session_->sums().why_not();
}

void LongReducer::begin(const ReductionShape& shape, ReductionData& data, const Choice& choice,
                        std::string_view why) {
  shape_ = shape;
  data_ = &data;
  vector_ = nullptr;
  reason_ = why;
  confirms_ = choice.confirms || choice.failure != Code::kDone;
  is_networked_ = is_repaired_ = awaits_end_ = is_complete_ = is_refused_ = false;
  if (failure_ == Code::kDone) take_part(choice.failure);
  const bool has_failed = failure_ != Code::kDone || has_given_up();
  is_networked_ = !has_failed && choice.way == Way::kNetwork && may_be_networked(data);
  if (is_networked_)
    begin_network();
  else if (!has_failed || session_ == nullptr)
    begin_messages(0);
}

// `failure`: of the ranks' agreement on the way.
void LongReducer::take_part(Code failure) {
  if (failure != Code::kDone) {
    (void)give_up(failure, "it can't agree with the other ranks on the way: MPI's messages fail");
    return;
  }
  if (session_ != nullptr && !session_->listen()) return;
  const Code rc = prepare();
  if (rc == Code::kDone) return;
  (void)give_up(rc, rc == Code::kNoMemory
                        ? "it has no memory for its data"
                        : "MPI can't pack its data: correct its buffer or its type");
}

void LongReducer::begin_network() {
  CallUnits call{shape_.block};
  call.values = call.result = vector_;
  call.combiner = data_->combiner;
  session_->begin(call);
}

// `first`: the bytes before this one have their result.
void LongReducer::begin_messages(std::size_t first) {
  is_networked_ = false;
  PairwiseOperation::Vector vector{vector_ + first, (shape_.block - first) / shape_.element,
                                   shape_.element};
  vector.combiner = data_->combiner;
  vector.op = data_->op;
  pairs_.begin(vector);
  if (failure_ != Code::kDone) pairs_.fail();
}

Code LongReducer::progress_network() {
  const Code rc = session_->progress();
  if (rc == Code::kPending) return rc;
  reason_ = session_->reason();
  is_repaired_ = session_->is_repaired();
  if (rc == Code::kNotServed) {
    begin_messages(session_->served_bytes());
    return Code::kPending;
  }
  if (rc == Code::kDone) return rc;
  is_refused_ = session_->is_refused();
  return failure_ = rc;
}

Code LongReducer::progress_messages() {
  const Code rc = awaits_end_ ? Code::kPending : pairs_.progress();
  if (rc == Code::kPending || rc == Code::kDone) return rc;
  if (rc == Code::kTruncated)
    return give_up(
        rc, "another rank's data has another length: pass the same count and type on all ranks");
  if (rc == Code::kEmpty && session_ != nullptr) {
    awaits_end_ = true;
    return Code::kPending;
  }
  if (rc == Code::kEmpty) return give_up(rc, "another rank has failed, and has logged the reason");
  return give_up(rc, "MPI's messages to or from rank " + std::to_string(pairs_.failed_member()) +
                         " fail, or the operation does");
}

Code LongReducer::reduce() {
  if (failure_ != Code::kDone) return failure_;
  if (has_given_up() && !is_networked_) {
    pairs_.finish();
    is_refused_ = session_->is_refused();
    return failure_ = session_->fail_call();
  }
  const Code rc = is_networked_ ? progress_network() : Code::kPending;
  return is_networked_ || rc != Code::kPending ? rc : progress_messages();
}

Code LongReducer::progress() {
  const Code rc = reduce();
  if (rc != Code::kDone) return rc;
  is_complete_ = true;
  if (data_->result.bytes() > 0) data_->result.unpack(0, vector_, shape_.block);
  if (memory_bytes_ > kKeptBytes) {
    memory_.reset();
    memory_bytes_ = 0;
  }
  return data_->result.error();
}

Code LongReducer::give_up(Code rc, const std::string& what) {
  failure_ = rc;
  const std::string text = rank_text(all_) + ": " + what;
  if (session_ != nullptr) {
    session_->give_up(text, confirms_);
    is_refused_ = session_->is_refused();
  } else {
    host::log(0, "cepheus: %s: its long reductions end in errors: %s", all_.name().c_str(),
              text.c_str());
  }
  return rc;
}

}  // namespace cepheus::coll
