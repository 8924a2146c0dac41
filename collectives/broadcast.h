// One MPI_Bcast, MPI_Ibcast, or start of a persistent broadcast, from its call to its end.
//
// Calls of a communicator are served in the order of their start (turn.h). So units have one order on
// all ranks, and a blocking broadcast waits for its turn. The oldest broadcast starts its NIC work
// inside its call, so its data moves while the program computes. The next broadcast starts when the
// program is inside any call of MPI.
#pragma once

#include <utility>

#include "collectives/turn.h"
#include "collectives/units/payload.h"

namespace cepheus::coll {

struct Broadcast : Turn {
  // `done`: of a non-blocking one, runs once it is complete, with nothing held. The broadcast is the
  // caller's again then.
  Broadcast(Payload data, int root_rank, void (*done_callback)(Broadcast*, Code) = nullptr)
      : Turn(Collective::kBcast, done_callback == nullptr),
        payload(std::move(data)),
        root(root_rank),
        done(done_callback) {}

  void finish() override { done(this, outcome); }
  Code error() const override { return payload.error(); }
  CallReport::Times times() const override { return {began, payload.bytes(), root}; }

  Payload payload;
  const int root;  // rank of the communicator
  void (*const done)(Broadcast*, Code);
};

}  // namespace cepheus::coll
