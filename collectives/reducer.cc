// run() takes one step; each goes on as far as messages allow. The blocks lie in message_ from the
// first step to the last, where each rank has its place. A leader that fails spreads its failure in its
// host: the outcome is in front of the blocks. A rank that does not get its parent's message writes
// that failure there, and passes it on.
//
// Memory: the blocks, a copy of them that the operation may overwrite, and a message each way.
#include "collectives/reducer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "arithmetic/pairs.h"
#include "collectives/core/tree.h"

namespace cepheus::coll {

namespace {

constexpr std::size_t kAligned = alignof(std::max_align_t);

std::size_t aligned(std::size_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }

constexpr const char* kNoMessages = "MPI's messages between it and its host's ranks fail";

// A leader lacks blocks of its host.
const char* why_blocks_lack(Code rc) {
  if (rc == Code::kTruncated)
    return "it lacks data of its host's ranks: pass the same count and type on all ranks";
  // Only a rank with an error of its own sends no bytes.
  return rc == Code::kEmpty ? "a rank of its host has failed, and has logged the reason"
                            : kNoMessages;
}

}  // namespace

Seats Seats::flat(const Team& all) {
  Seats seats{all, all.part({all.self()}), static_cast<std::size_t>(all.self()), {}, {}};
  for (int rank = 0; rank <= all.size(); ++rank) seats.first.push_back(rank);
  return seats;
}

Reducer::Reducer(Seats seats, ReductionSession* session)
    : seats_(std::move(seats)),
      session_(session),
      leaders_reason_("rank " + std::to_string(seats_.inside.rank_of(Team::kLeader)) +
                      ", which leads this host, has the reason") {}

std::size_t Reducer::own_place() const {
  return static_cast<std::size_t>(seats_.first[seats_.own_host] + seats_.inside.self());
}

void Reducer::begin(const ReductionShape& shape, ReductionData& data, std::string_view why,
                    Across across, bool confirms) {
  shape_ = shape;
  data_ = &data;
  failure_ = send_failure_ = Code::kDone;
  confirms_ = confirms;
  is_refused_ = false;
  step_ = Step::kCollect;
  if (own_failure_ != Code::kDone) return refuse();  // its sends may still read message_
  detach();
  bytes_ = std::max<std::size_t>(shape.block, 1);
  message_.resize(sizeof(Outcome) + seats_.ranks() * bytes_);
  has_begun_ = is_exchanged_ = is_repaired_ = is_passed_on_ = false;
  may_use_network_ = across == Across::kNetwork;
  reason_ = !why.empty() ? why : "among one rank of each host";
  if (shape.block == 0) return;
  const Code rc = data.contribution.pack(0, block(own_place()), bytes_);
  if (rc != Code::kDone) give_up(rc, "MPI can't pack its data: correct its buffer or its type");
}

// Empty messages, in the place of its block and of those to the ranks below it: they wait for no other
// rank.
void Reducer::refuse() {
  if (leads()) return;
  is_refused_ = confirms_;
  const Team& team = seats_.inside;
  const auto post = [&](int member) {
    (void)Messages::post(nullptr, 0, member, Tag::kBlocks, team);
  };
  post(Team::kLeader);
  Tree{{team.self(), team.size(), Team::kLeader}}.children(post);
}

void Reducer::detach() {
  messages_.forget();
  sends_.forget();
  exchange_.finish();
}

// The other ranks must not wait for this one's host.
void Reducer::give_up(Code rc, const char* what) {
  if (failure_ == Code::kDone) failure_ = rc;
  const std::string text = rank_text(seats_.inside) + ": " + what;
  const bool is_refusal = confirms_ && step_ == Step::kCollect;
  is_refused_ = is_refused_ || is_refusal;
  if (session_ != nullptr) return session_->give_up(text, is_refusal);
  log(text);
  if (leads()) own_failure_ = rc;
}

// This rank leads no host. Its leader learns of it with the next call, without the reason.
Code Reducer::end_reductions(Code rc) {
  log(rank_text(seats_.inside) + ": " + kNoMessages);
  return own_failure_ = rc;
}

void Reducer::log(const std::string& what) const {
  host::log(0, "cepheus: a reduction on %s ends in an error: %s",
            host::name(seats_.inside.comm()).c_str(), what.c_str());
}

Route Reducer::route() const {
  if (is_exchanged_) return Route::kMessages;
  return seats_.rank_of.empty() ? Route::kNetwork : Route::kHosts;
}

Code Reducer::collect() {
  if (seats_.inside.size() == 1) return Code::kDone;
  Code rc = Code::kDone;
  if (!std::exchange(has_begun_, true)) {
    const std::size_t place = own_place();
    if (!leads()) {
      rc = messages_.send(block(place), failure_ == Code::kDone ? bytes_ : 0, Team::kLeader,
                          Tag::kBlocks, seats_.inside);
      if (rc != Code::kDone) refuse();
    }
    for (int member = 1; leads() && member < seats_.inside.size() && rc == Code::kDone; ++member)
      rc = messages_.receive(block(place + static_cast<std::size_t>(member)), bytes_, member,
                             Tag::kBlocks, seats_.inside);
    if (rc != Code::kDone) return rc;
  }
  return messages_.test(rc) ? rc : Code::kPending;
}

Code Reducer::exchange() {
  // Sends of an exchange that has failed may still read its blocks: no other exchange begins.
  if (session_ != nullptr && session_->has_given_up()) {
    exchange_.finish();
    is_exchanged_ = true;
    return session_->fail_call();
  }
  if (!std::exchange(is_exchanged_, true)) {
    host_bytes_.clear();
    for (std::size_t host = 0; host + 1 < seats_.first.size(); ++host)
      host_bytes_.push_back(static_cast<std::size_t>(seats_.first[host + 1] - seats_.first[host]) *
                            bytes_);
    exchange_.begin(seats_.leaders, host_bytes_,
                    block(static_cast<std::size_t>(seats_.first[seats_.own_host])));
  }
  const Code rc = exchange_.progress();
  if (rc == Code::kPending) return rc;
  if (rc == Code::kDone) {
    exchange_.copy_to(blocks());
  } else if (rc == Code::kTruncated || rc == Code::kEmpty) {
    give_up(rc,
            "another rank's data has another length: pass the same count and type on all ranks");
  } else if (session_ != nullptr) {
    session_->lose(exchange_.failed_member());
    (void)session_->fail_call();
  }
  exchange_.finish();
  return rc;
}

Code Reducer::across() {
  if (!leads()) return Code::kDone;
  if (session_ == nullptr || !may_use_network_ || is_exchanged_) return exchange();
  const std::size_t total = seats_.ranks() * shape_.block;
  const auto first = static_cast<std::size_t>(seats_.first[seats_.own_host]);
  if (!std::exchange(has_begun_, true))
    session_->begin({total,
                     {block(first), static_cast<std::size_t>(seats_.inside.size()) * shape_.block,
                      first * shape_.block}});
  const Code rc = session_->progress();
  if (rc == Code::kPending) return rc;
  reason_ = session_->reason();
  is_repaired_ = session_->is_repaired();
  if (rc == Code::kNotServed) return exchange();
  if (rc == Code::kDone && total > 0) std::memcpy(blocks(), session_->result(), total);
  return rc;
}

// This member of the host reduces the blocks, or one below it in the tree does.
bool Reducer::needs_blocks(int member) const {
  if (shape_.collective == Collective::kBarrier) return false;
  if (shape_.collective != Collective::kReduce) return true;
  const Team& team = seats_.inside;
  int at = team.member_of(shape_.root);
  while (at > member) at = Tree{{at, team.size(), Team::kLeader}}.parent();
  return at == member;
}

// The outcome, and the blocks, from the leader down.
Code Reducer::spread() {
  const Team& team = seats_.inside;
  if (team.size() == 1) return Code::kDone;
  const Tree tree{{team.self(), team.size(), Team::kLeader}};
  Code rc = Code::kDone;
  if (!std::exchange(has_begun_, true) && !leads())
    rc = messages_.receive(message_.data(), spread_bytes(team.self()), tree.parent(), Tag::kBlocks,
                           team);
  if (rc == Code::kDone && !messages_.test(rc)) return Code::kPending;
  if (rc != Code::kDone) {
    // Behind a message of another length the ranks' messages still match, and the leader has refused:
    // it has met that length, too. Else the parent is gone.
    if (rc != Code::kTruncated && rc != Code::kEmpty)
      (void)end_reductions(rc);
    else
      is_refused_ = confirms_;
    write_outcome(rc);
    rc = Code::kDone;
  }
  if (!std::exchange(is_passed_on_, true))
    tree.children([&](int child) {
      const Code sent =
          sends_.send(message_.data(), spread_bytes(child), child, Tag::kBlocks, team);
      if (sent == Code::kDone) return;
      send_failure_ = sent;
      pass_failure_on(child);
    });
  // Also behind a refused one: the others read message_.
  if (!sends_.test(rc)) return Code::kPending;
  return send_failure_ != Code::kDone ? send_failure_ : rc;
}

// In the place of a message that MPI has refused, and of its length: so the child's messages still
// match. Its outcome is the one of all other ranks; if that is a success, it is this failure. A copy.
void Reducer::pass_failure_on(int child) {
  std::vector<std::byte> message(
      message_.begin(), message_.begin() + static_cast<std::ptrdiff_t>(spread_bytes(child)));
  Outcome outcome{};
  std::memcpy(&outcome, message.data(), sizeof outcome);
  if (outcome.code == Code::kDone) outcome.code = send_failure_;
  std::memcpy(message.data(), &outcome, sizeof outcome);
  (void)Messages::post(message.data(), message.size(), child, Tag::kBlocks, seats_.inside);
}

// --- The local reduction.

Code Reducer::write_gathered() {
  if (seats_.rank_of.empty()) {
    data_->result.unpack(0, blocks(), seats_.ranks() * bytes_);
    return data_->result.error();
  }
  scratch_.resize(seats_.ranks() * bytes_);
  for (std::size_t place = 0; place < seats_.ranks(); ++place)
    std::memcpy(scratch_.data() + static_cast<std::size_t>(seats_.rank_of[place]) * bytes_,
                block(place), bytes_);
  data_->result.unpack(0, scratch_.data(), scratch_.size());
  return data_->result.error();
}

// In the order of ranks.
Code Reducer::reduce_blocks() {
  const std::size_t ranks = seats_.ranks(), step_bytes = aligned(bytes_);
  scratch_.resize(ranks * step_bytes);
  operands_.resize(ranks);
  for (std::size_t place = 0; place < ranks; ++place) {
    const std::size_t rank =
        seats_.rank_of.empty() ? place : static_cast<std::size_t>(seats_.rank_of[place]);
    operands_[rank] = scratch_.data() + rank * step_bytes;
    std::memcpy(operands_[rank], block(place), bytes_);
  }
  if (data_->combiner)
    combine(*data_->combiner);
  else if (const Code rc = apply(*data_->op); rc != Code::kDone)
    return rc;
  data_->result.unpack(0, operands_[0], bytes_);
  return data_->result.error();
}

// No code of the program's runs meanwhile: the floating-point environment is the library's.
void Reducer::combine(const arithmetic::Combiner& combiner) {
  const auto values = [this](std::size_t i) {
    return reinterpret_cast<std::uint8_t*>(operands_[i]);
  };
  const arithmetic::Batch batch(combiner);
  arithmetic::combine_in_pairs(operands_.size(), [&](std::size_t left, std::size_t right) {
    batch.combine(values(left), values(right), bytes_);
  });
}

// The result of two operands lies in the right one's memory.
Code Reducer::apply(Operator& op) {
  Code rc = Code::kDone;
  const std::size_t elements = bytes_ / shape_.element;
  arithmetic::combine_in_pairs(operands_.size(), [&](std::size_t left, std::size_t right) {
    if (rc == Code::kDone) rc = op.apply(operands_[left], operands_[right], elements);
    operands_[left] = operands_[right];
  });
  return rc;
}

Code Reducer::reduce() {
  switch (shape_.collective) {
    case Collective::kAllgather:
      return write_gathered();
    case Collective::kReduce:
      if (data_->result.bytes() == 0) return Code::kDone;  // not the root
      [[fallthrough]];
    case Collective::kAllreduce:
      return reduce_blocks();
    case Collective::kBarrier:
    case Collective::kBcast:
      break;
  }
  return Code::kDone;
}

Code Reducer::run() {
  switch (step_) {
    case Step::kCollect:
      return collect();
    case Step::kAcross:
      return across();
    case Step::kSpread:
      return spread();
    case Step::kReduce:
      return reduce();
  }
  return Code::kDone;
}

// After a step with outcome `rc`. Code::kPending: the next step follows.
Code Reducer::end_step(Code rc) {
  switch (step_) {
    case Step::kCollect:
      if (!leads() && rc != Code::kDone) return end_reductions(rc);
      end_collect(rc);
      break;
    case Step::kAcross:
      if (!leads()) break;
      if (failure_ == Code::kDone) failure_ = rc;
      if (rc != Code::kDone && session_ == nullptr) own_failure_ = rc;
      write_outcome(failure_);
      break;
    case Step::kSpread:
      rc = end_spread(rc);
      if (rc != Code::kDone) return rc;
      break;
    case Step::kReduce:
      return rc;
  }
  step_ = static_cast<Step>(static_cast<int>(step_) + 1);
  has_begun_ = false;
  return Code::kPending;
}

// A leader without all blocks of its host goes on to the spread.
void Reducer::end_collect(Code rc) {
  if (!leads()) return;
  if (rc != Code::kDone) give_up(rc, why_blocks_lack(rc));
  if (failure_ == Code::kDone) return;
  write_outcome(failure_);
  step_ = Step::kAcross;  // it is over
}

Code Reducer::end_spread(Code rc) {
  if (rc != Code::kDone && leads())
    give_up(rc, "it can't send a result to its host's ranks");
  else if (rc != Code::kDone && own_failure_ == Code::kDone)
    (void)end_reductions(rc);
  if (seats_.inside.size() == 1) return failure_;
  Outcome outcome{};
  std::memcpy(&outcome, message_.data(), sizeof outcome);
  is_exchanged_ = outcome.is_exchanged != 0;
  is_refused_ = is_refused_ || outcome.is_refused != 0;
  if (is_exchanged_ && may_use_network_ && !leads()) reason_ = leaders_reason_;
  if (failure_ != Code::kDone) return failure_;
  return rc != Code::kDone ? rc : outcome.code;
}

void Reducer::write_outcome(Code rc) {
  const bool is_ended = confirms_ && rc != Code::kDone && session_ != nullptr;
  if (is_ended && session_->is_refused()) is_refused_ = true;
  const auto flag = [](bool is_set) { return static_cast<std::uint16_t>(is_set ? 1 : 0); };
  const Outcome outcome{rc, flag(is_exchanged_), flag(is_refused_)};
  std::memcpy(message_.data(), &outcome, sizeof outcome);
}

Code Reducer::progress() {
  Code rc = own_failure_;
  while (rc == Code::kDone) {
    rc = run();
    if (rc == Code::kPending) return rc;
    rc = end_step(rc);
    if (rc != Code::kPending) return rc;
    rc = Code::kDone;
  }
  return rc;
}

}  // namespace cepheus::coll
