// One call of a collective on a communicator. Calls are served in the order of their start, which is
// one order on all ranks: a broadcast and a reduction never overtake each other.
#pragma once

#include <cstdint>
#include <string>

#include "collectives/algorithm.h"
#include "collectives/call_report.h"
#include "collectives/core/collective.h"

namespace cepheus::coll {

struct Turn {
  Turn(Collective of, bool waits)
      : collective(of), blocking(waits), began(CallReport::begin_call()) {}
  virtual ~Turn() = default;
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // The program waits inside MPI until it is done.
  bool is_blocking() const { return blocking; }
  // A non-blocking one is over: gives it back to its caller, with nothing held.
  virtual void finish() = 0;
  // Once its algorithm is done: the first failure of its data.
  virtual Code error() const = 0;
  // ... and the numbers of its report.
  virtual CallReport::Times times() const = 0;

  const Collective collective;
  const bool blocking;
  const std::int64_t began;        // for recordings: ns, 0 while there is none
  bool is_unserved = false;        // it was started before the ranks' places were looked at again
  Algorithm* algorithm = nullptr;  // from its turn on, until it is over
  std::string why_saved;           // Code::kNotServed: the reason
  Code outcome = Code::kDone;      // once it is over
  Turn* behind = nullptr;          // in its queue
};

// Non-blocking ones, first in, first out. They are their callers' memory: nothing is allocated.
class TurnQueue {
 public:
  bool is_empty() const { return first_ == nullptr; }
  Turn* front() const { return first_; }
  void push(Turn* turn) {
    turn->behind = nullptr;
    (first_ == nullptr ? first_ : last_->behind) = turn;
    last_ = turn;
  }
  Turn* pop() {  // null: empty
    Turn* const turn = first_;
    if (turn != nullptr) first_ = turn->behind;
    return turn;
  }
  // Appends all of `other`.
  void take(TurnQueue& other) {
    while (Turn* const turn = other.pop()) push(turn);
  }

 private:
  Turn* first_ = nullptr;
  Turn* last_ = nullptr;
};

}  // namespace cepheus::coll
