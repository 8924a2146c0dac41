// A unit of a broadcast without a fabric: packed bytes down the binomial tree, over
// Open MPI's own messages. A rank without data sends empty messages in its place and the reason
// behind them, so the ranks below end with the same error instead of waiting. The error is the
// payload's: all ranks take part in the units that follow.
//
// It serves inside hosts, and where the saved module can't: whether a unit of a non-blocking
// broadcast goes this way is known only when its turn has come, on each rank at another time, and
// Open MPI's non-blocking collectives must be started in one order on all ranks.
#pragma once

#include <algorithm>
#include <memory>

#include "ompi-coll/messages.h"
#include "ompi-coll/operation.h"
#include "ompi-coll/parameters.h"

namespace cepheus::coll {

class TreeOperation final : public Operation {
 public:
  static constexpr size_t kMostSegment = size_t{1} << 20;

  explicit TreeOperation(const Call& call) : call_(call) {}
  int progress(Actions& out) override;
  int serve(int, uint64_t) override { return OMPI_SUCCESS; }

 private:
  int start();
  int pass_on();
  int take();
  int refuse(int why);
  bool has_received_all();

  // What a rank has received of a unit, it passes on before the rest has come.
  static size_t segment() { return std::min(parameters().tree_segment, kMostSegment); }
  size_t segments() const { return (call_.length + segment() - 1) / segment(); }
  size_t segment_bytes(size_t index) const {
    return index + 1 < segments() ? segment() : call_.length - index * segment();
  }
  std::byte* memory(size_t index) const;

  Call call_;
  bool started_ = false;
  void* window_ = nullptr;
  std::unique_ptr<Messages[]> receives_;  // a segment each; not the root's
  size_t here_ = 0;                       // segments that this rank has and has passed on
  Messages sends_;
  bool is_refused_ = false;     // from above
  int refusal_ = OMPI_SUCCESS;  // why the ranks below get no more data
  Messages reason_;             // of those above
};

}  // namespace cepheus::coll
