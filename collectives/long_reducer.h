// A long MPI_Allreduce or MPI_Reduce: one of more data than a gather takes (reducer.h).
//
//   network    switches reduce the values, if arithmetic/ has the operation, and each rank has a host of
//              its own. Floating-point sums depend on pairs: if the group has those that the user wants
//   messages   ... else, or from the first part on that the network has not served: the ranks' own
//              messages, in the same pairs by rank as a short one
//
// All ranks get the result, also that of a reduce: so none returns before all have begun, and the ways'
// times can be compared. By messages all ranks take part alike, wherever they are: the host's messages know shared memory. No
// rank gathers all blocks. If the result's memory on this rank is contiguous, it is the memory of the
// partial results, too; else a rank has one further block, which it keeps if it is short.
//
// A rank that fails lets its session give up, and so all reductions of all ranks end in errors. Without a
// session it sends failures to the ranks that await its data, and they do the same. Then all its long
// reductions end in errors, and so do those of the others from the next one on at the latest. Others go
// on, because messages of long ones have a tag of their own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "collectives/algorithm.h"
#include "collectives/core/comparison.h"
#include "collectives/group/reduction_session.h"
#include "collectives/reduction.h"
#include "collectives/units/pairwise_operation.h"

namespace cepheus::coll {

class LongReducer final : public Algorithm {
 public:
  // `all`: the ranks of the communicator. `session`: theirs; null: the network never serves.
  LongReducer(const Team& all, ReductionSession* session)
      : all_(all), session_(session), pairs_(all) {}

  // The network may serve it, as all ranks find alike.
  bool may_be_networked(const ReductionData& data) const {
    return session_ != nullptr && data.combiner && session_->sums().may_serve(*data.combiner);
  }
  // ... and the reason why not.
  std::string_view why_not_networked(const ReductionData& data) const;
  // ... and its ways may be compared.
  bool may_be_compared(const ReductionData& data) const {
    return may_be_networked(data) && session_->sums().may_compare(*data.combiner);
  }
  // `why`: the reason if the network does not serve it.
  void begin(const ReductionShape& shape, ReductionData& data, const Choice& choice,
             std::string_view why);
  Code progress() override;
  std::chrono::nanoseconds spare_time() const override { return std::chrono::nanoseconds(0); }
  Route route() const override { return is_networked_ ? Route::kNetwork : Route::kMessages; }
  const std::string& reason() const override { return reason_; }
  bool is_comparable() const override { return !is_repaired_; }
  bool has_met_all() const override { return is_complete_; }
  bool is_refused() const override { return is_refused_; }
  void detach() { pairs_.finish(); }  // local: cancels receives on the communicator

 private:
  bool has_given_up() const { return session_ != nullptr && session_->has_given_up(); }
  void take_part(Code failure);
  std::byte* own_memory();
  Code prepare();
  void begin_network();
  void begin_messages(std::size_t first);
  Code reduce();
  Code progress_network();
  Code progress_messages();
  Code give_up(Code rc, const std::string& what);

  const Team& all_;
  ReductionSession* const session_;
  PairwiseOperation pairs_;
  ReductionShape shape_{};
  ReductionData* data_ = nullptr;
  std::byte* vector_ = nullptr;          // partial results
  std::unique_ptr<std::byte[]> memory_;  // ... where the result's memory can't have them
  std::size_t memory_bytes_ = 0;
  bool confirms_ = false;
  bool is_networked_ = false;
  bool is_repaired_ = false;  // the network has not brought all of its result here
  bool awaits_end_ = false;   // the session will give up: another rank has failed
  bool is_complete_ = false;  // the call, but for the result's place
  bool is_refused_ = false;
  Code failure_ = Code::kDone;  // all long reductions of this rank end in it
  std::string reason_;
};

}  // namespace cepheus::coll
