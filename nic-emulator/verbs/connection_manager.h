// The kernel's RDMA connection manager, which programs reach through librdmacm: this device has
// none.
#pragma once

namespace cepheus::verbs {

// Call it for every file that the program opens, with open()'s result. If a program opens the
// connection manager's file and there is none, librdmacm's error misleads ("Cannot allocate
// memory"). This prints one line on stderr, once a process. Keeps errno.
//
// MPI ranks and programs with UCX's rdmacm module only probe for the file and work without it. For
// them the line appears with CEPHEUS_VERBOSE only, and once a job.
void note_opening(const char* path, int result);

}  // namespace cepheus::verbs
