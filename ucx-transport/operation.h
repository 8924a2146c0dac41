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

// An operation for `state`, with `op.user` set to it; null if there is no memory.
Operation* take_operation(InterfaceState& state);
// libmcast did not take it.
void give_back(Operation* operation);
// The operation has ended with `status`: notes a failure for the interface. False: the interface is
// closed, and gets no callback.
bool end(Operation* operation, mcast_status_t status);
// Ends a send or a put, and calls its completion.
void complete(Operation* operation, mcast_status_t status);
// The same as mcast_op_t::done.
void on_done(mcast_op_t* op, mcast_status_t status, size_t length, uint32_t imm);

}  // namespace cepheus::uct
