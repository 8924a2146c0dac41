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
  ++state.operations;
  return operation;
}

void give_back(Operation* operation) {
  --operation->state->operations;
  operation->state->idle.push_back(operation);
}

void complete(Operation* operation, mcast_status_t status) {
  uct_completion_t* comp = operation->comp;
  if (status != MCAST_OK) operation->state->failure = to_ucs(status);
  give_back(operation);
  if (comp != nullptr) {
    uct_completion_update_status(comp, to_ucs(status));
    if (--comp->count == 0) comp->func(comp);
  }
}

void free_operations(InterfaceState& state) {
  for (Operation* operation : state.idle) delete operation;
  state.idle.clear();
}

}  // namespace cepheus::uct
