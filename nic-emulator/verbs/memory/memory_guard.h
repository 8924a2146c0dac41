// Access to a program's memory that may be unmapped by now.
//
// A NIC pins registered memory. We can't. So if a program unmaps memory before it deregisters it,
// or truncates its file, a peer's WRITE would end the process. Handlers of SIGSEGV and SIGBUS detect
// such an access and end the access instead. Every other fault goes to the handler that was there
// before. So does a fault in memory that is mapped without the right to write or read: programs
// protect memory to learn of changes, and their handlers allow the access.
#pragma once

#include <cstddef>

#include "nic-emulator/engine/verbs_types.h"
#include "nic-emulator/verbs/engine_names.h"

namespace cepheus::verbs {

// Installs the handlers in front of the program's own, again if the program has replaced one since.
// Thread-safe: they are installed when any thread's call returns. Later handlers of the program
// replace ours. Registering memory calls this too, and is more frequent than setting handlers.
void install_memory_guard();

// A rnic::MemoryGuard. Without the handlers, or in a thread that blocks the signals, a fault ends
// the process.
AccessEnd guard_memory(const void* memory, std::size_t bytes, void (*work)(void*), void* argument);

}  // namespace cepheus::verbs
