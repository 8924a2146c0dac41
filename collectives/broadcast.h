// One MPI_Bcast, MPI_Ibcast, or start of a persistent broadcast, from its call to its end.
//
// Broadcasts of a communicator are served in the order of their calls. So units have one order on
// all ranks, and a blocking broadcast waits for its turn. The oldest broadcast starts its NIC work
// inside its call, so its data moves while the program computes. The next broadcast starts when the
// program is inside any call of MPI.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "collectives/algorithm.h"
#include "collectives/call_report.h"
#include "collectives/units/payload.h"

namespace cepheus::coll {

struct Broadcast {
  // `done`: of a non-blocking one, runs once it is complete, with nothing held. The broadcast is the
  // caller's again then.
  Broadcast(Payload data, int root_rank, void (*done_callback)(Broadcast*, Code) = nullptr)
      : payload(std::move(data)),
        root(root_rank),
        done(done_callback),
        began(CallReport::begin_call()) {}

  // Blocking: the program waits inside MPI until it is done.
  bool is_blocking() const { return done == nullptr; }

  Payload payload;
  const int root;  // rank of the communicator
  void (*const done)(Broadcast*, Code);
  const std::int64_t began;        // for recordings: ns, 0 while there is none
  bool is_unserved = false;        // it was started before the ranks' places were looked at again
  Algorithm* algorithm = nullptr;  // from its turn on, until it is over
  std::string why_saved;           // Code::kNotServed: the reason
  Code outcome = Code::kDone;      // once it is over
  Broadcast* behind = nullptr;     // in its queue
};

// Non-blocking ones, first in, first out. They are their callers' memory: nothing is allocated.
class BroadcastQueue {
 public:
  bool is_empty() const { return first_ == nullptr; }
  Broadcast* front() const { return first_; }
  void push(Broadcast* broadcast) {
    broadcast->behind = nullptr;
    (first_ == nullptr ? first_ : last_->behind) = broadcast;
    last_ = broadcast;
  }
  Broadcast* pop() {  // null: empty
    Broadcast* const broadcast = first_;
    if (broadcast != nullptr) first_ = broadcast->behind;
    return broadcast;
  }
  // Appends all of `other`.
  void take(BroadcastQueue& other) {
    while (Broadcast* const broadcast = other.pop()) push(broadcast);
  }

 private:
  Broadcast* first_ = nullptr;
  Broadcast* last_ = nullptr;
};

}  // namespace cepheus::coll
