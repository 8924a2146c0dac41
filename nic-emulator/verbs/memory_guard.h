// Access to a program's memory that may be unmapped by now.
//
// A NIC pins registered memory. We can't. So if a program unmaps memory before it deregisters it,
// a peer's WRITE would end the process. A handler of SIGSEGV detects such an access and ends the
// access instead. Every other fault goes to the handler that was there before.
#pragma once

#include <cstddef>

namespace cepheus::verbs {

// Installs the handler in front of the program's own, again if the program has replaced it since.
// Thread-safe: it is installed when any thread's call returns. Later handlers of the program
// replace ours. Registering memory calls this too, and is more frequent than setting handlers.
void install_memory_guard();

// A rnic::MemoryGuard. Without the handler, or in a thread that blocks SIGSEGV, a fault ends the
// process.
bool guard_memory(const void* memory, std::size_t bytes, void (*work)(void*), void* argument);

}  // namespace cepheus::verbs
