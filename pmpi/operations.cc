#include "pmpi/operations.h"

#include <map>
#include <mutex>

#include "pmpi/calls.h"

namespace cepheus::pmpi {

namespace {

struct Held {
  int calls = 0;
  bool is_freed = false;  // by the program
};

std::mutex mutex;
std::map<Op, Held>& all() {
  static std::map<Op, Held>& operations = *new std::map<Op, Held>;
  return operations;
}

}  // namespace

void hold_operation(Op op) {
  const std::lock_guard<std::mutex> guard(mutex);
  ++all()[op].calls;
}

void release_operation(Op op) {
  {
    const std::lock_guard<std::mutex> guard(mutex);
    const auto found = all().find(op);
    if (--found->second.calls > 0) return;
    const bool is_freed = found->second.is_freed;
    all().erase(found);
    if (!is_freed) return;
  }
  (void)calls().Op_free(&op);
}

bool free_later(Op op) {
  const std::lock_guard<std::mutex> guard(mutex);
  const auto found = all().find(op);
  if (found == all().end()) return false;
  found->second.is_freed = true;
  return true;
}

}  // namespace cepheus::pmpi
