// Operations are allocated only if none is idle, and freed when the interface closes. An operation
// is idle again before its callback runs, so the callback may start the next one with it. Once the
// interface is closing, operations end without a callback.
#include "ucx-transport/operation.h"

#include <new>

namespace cepheus::uct {

Operation* take_operation(InterfaceState& state) {
  Operation* operation;
  if (state.idle.empty()) {
    operation = new (std::nothrow) Operation{};
    if (operation == nullptr) return nullptr;
    operation->state = &state;
    operation->op.user = operation;
  } else {
    operation = state.idle.back();
    state.idle.pop_back();
  }
  return operation;
}

void give_back(Operation* operation) { operation->state->idle.push_back(operation); }

bool end(Operation* operation, mcast_status_t status) {
  InterfaceState* const state = operation->state;
  if (status != MCAST_OK) state->failure = to_ucs(status);
  give_back(operation);
  return !state->is_closed;
}

void complete(Operation* operation, mcast_status_t status) {
  uct_completion_t* const comp = operation->comp;
  if (!end(operation, status) || comp == nullptr) return;
  uct_completion_update_status(comp, to_ucs(status));
  if (--comp->count == 0) comp->func(comp);
}

void on_done(mcast_op_t* op, mcast_status_t status, size_t, uint32_t) {
  complete(static_cast<Operation*>(op->user), status);
}

void release_operations(InterfaceState& state) {
  for (Operation* operation : state.idle) delete operation;
}

}  // namespace cepheus::uct
