// One reduction: all ranks get the blocks of all ranks, and each reduces them itself, in pairs by rank.
//
//   collect   inside a host: its ranks send their blocks to its leader
//   across    the hosts' leaders gather all blocks: in the network, or by messages
//   spread    inside a host: all blocks go down a binomial tree, to the ranks that reduce them
//   reduce    ((0 1) (2 3)) ((4 5) ...): the same pairs on every rank and every way across
//
// A failure inside one host, or of a rank that can't pack its block, ends the reductions of all ranks in
// errors: the host's leader lets its session give up, and spreads the failure in its host. A rank that
// leads no host sends its leader an empty message in the place of its block.
//
// A call behind an agreement of the ranks tells them whether it was refused: a rank has failed before its
// block went across, so no rank completes the call. ENDED has that to other hosts, and the outcome inside
// a host. Behind any other failure some ranks may have completed it.
//
// Without a session no rank learns of a failure: the failed rank's reductions end in errors, and the
// other ranks wait for its messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/algorithm.h"
#include "collectives/group/reduction_session.h"
#include "collectives/reduction.h"
#include "collectives/units/exchange_operation.h"

namespace cepheus::coll {

// The order in which ranks' blocks travel: host after host.
struct Seats {
  Team leaders;              // of all hosts; self() is -1 on a rank that is none
  Team inside;               // the ranks of this host, its leader first
  std::size_t own_host = 0;  // index among the leaders
  std::vector<int> rank_of;  // by place; empty: place i is rank i
  std::vector<int> first;    // by host: its first place; and the number of ranks behind them

  // Each rank has a host of its own.
  static Seats flat(const Team& all);
  std::size_t ranks() const { return static_cast<std::size_t>(first.back()); }
};

class Reducer final : public Algorithm {
 public:
  // `session`: the leaders'; null on other ranks, and if the network never serves.
  Reducer(Seats seats, ReductionSession* session);

  // kMessages: on all ranks, even if the network may serve it.
  enum class Across : std::uint8_t { kNetwork, kMessages };
  // `why`: the reason why the network does not serve it, if it never does, or shall not.
  // `confirms`: it is right behind an agreement, or this rank has failed to agree.
  void begin(const ReductionShape& shape, ReductionData& data, std::string_view why,
             Across across = Across::kNetwork, bool confirms = false);
  // ... behind begin(): this rank can't take part, for `what`, so the call ends in errors on all.
  void fail(Code rc, const char* what) { give_up(rc, what); }
  Code progress() override;
  std::chrono::nanoseconds spare_time() const override { return std::chrono::nanoseconds(0); }
  Route route() const override;
  const std::string& reason() const override { return reason_; }
  bool is_comparable() const override { return !is_repaired_; }
  bool has_met_all() const override { return step_ == Step::kReduce; }
  bool is_refused() const override { return is_refused_; }
  void detach();  // local: cancels receives on the communicator

 private:
  enum class Step : std::uint8_t { kCollect, kAcross, kSpread, kReduce };

  // In front of the blocks.
  struct Outcome {
    Code code;
    std::uint16_t is_exchanged;  // by messages
    std::uint16_t is_refused;
  };

  std::byte* blocks() { return message_.data() + sizeof(Outcome); }
  std::byte* block(std::size_t place) { return blocks() + place * bytes_; }
  std::size_t own_place() const;
  bool leads() const { return seats_.inside.is_leader(); }
  Code run();
  Code end_step(Code rc);
  void end_collect(Code rc);
  Code end_spread(Code rc);
  void write_outcome(Code rc);
  void give_up(Code rc, const char* what);
  Code end_reductions(Code rc);
  void log(const std::string& what) const;
  void refuse();
  Code collect();
  Code across();
  Code exchange();
  bool needs_blocks(int member) const;
  std::size_t spread_bytes(int member) const {
    return needs_blocks(member) ? message_.size() : sizeof(Outcome);
  }
  Code spread();
  void pass_failure_on(int child);
  Code reduce();
  Code write_gathered();
  Code reduce_blocks();
  void combine(const arithmetic::Combiner& combiner);
  Code apply(Operator& op);

  const Seats seats_;
  ReductionSession* const session_;
  const std::string leaders_reason_;
  std::vector<std::size_t> host_bytes_;  // by host: of its ranks' blocks
  Code own_failure_ = Code::kDone;       // this rank's reductions end in this error, all of them

  ReductionShape shape_{};
  ReductionData* data_ = nullptr;
  std::size_t bytes_ = 0;           // of a block as it travels: one at least
  std::vector<std::byte> message_;  // the outcome across, and all blocks by place
  std::vector<std::byte> scratch_;
  std::vector<std::byte*> operands_;
  Code failure_ = Code::kDone;       // of this call, at this rank or across
  Code send_failure_ = Code::kDone;  // ... of a message to a rank below
  Step step_ = Step::kCollect;
  bool confirms_ = false;
  bool is_refused_ = false;
  bool has_begun_ = false;  // the step
  bool may_use_network_ = true;
  bool is_exchanged_ = false;  // by messages across
  bool is_repaired_ = false;   // the network has not brought its result here
  bool is_passed_on_ = false;  // to the ranks below
  Messages messages_;
  Messages sends_;
  ExchangeOperation exchange_;
  std::string reason_;
};

}  // namespace cepheus::coll
