// Bulk operations that UCT handed to libmcast.
#pragma once

#include "ucx-transport/interface.h"

namespace cepheus::uct {

struct Operation {
  mcast_op_t op;
  InterfaceState* state;
  uct_completion_t* comp;  // sends and puts; may be null
  uct_tag_context_t* ctx;  // receives
  uct_tag_t tag, mask;
  BounceBuffers::Number bounce;  // puts of packed data
};

// One for `state`, whose `op.user` is itself; null if there is no memory.
Operation* take_operation(InterfaceState& state);
void give_back(Operation* operation);
// Ends a send or a put: says `status` to its completion and, unless it is good, to the interface.
void complete(Operation* operation, mcast_status_t status);

}  // namespace cepheus::uct
