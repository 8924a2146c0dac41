// A stack of ours for deep calls: the program's thread may have a few KiB alone, which suffice for its
// MPI. UCX, drivers and libraries that they load have buffers for paths and messages on the stack.
#pragma once

#include <functional>

#include "wire/leave_signals.h"

namespace cepheus::coll {

using wire::LeaveSignals;

// Runs `work` in another thread, and waits for its end. If no thread can start, it runs in the caller's.
void on_own_stack(const std::function<void()>& work);

}  // namespace cepheus::coll
