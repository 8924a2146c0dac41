// Access to a program's memory that may be unmapped by now.
//
// A NIC pins registered memory. We can't, so a program that unmaps memory before it deregisters it
// takes it away under the NIC, and a peer's WRITE would end the process. A handler of SIGSEGV
// notices such an access and ends it. Every other fault goes to the handler that was there before.
#pragma once

#include <cstddef>

namespace cepheus::verbs {

// Puts the handler in place, in front of the program's own; again if the program has replaced it
// since. Thread-safe: it is in place when any thread's call returns. Later handlers of the program's
// replace ours: memory is registered more often than handlers are set, so registering calls this,
// too.
void install_memory_guard();

// A rnic::MemoryGuard. Without the handler, or in a thread that blocks SIGSEGV, a fault ends the
// process as before.
bool guard_memory(const void* memory, std::size_t bytes, void (*work)(void*), void* argument);

}  // namespace cepheus::verbs
