// The kernel's RDMA connection manager, which programs reach through librdmacm: this device has
// none.
#pragma once

namespace cepheus::verbs {

// To be told of every file that the program opens, with open()'s result. If a program asks for the
// connection manager and there is none, librdmacm's own errors do not say so ("Cannot allocate
// memory"): one line on stderr does, once a process. Keeps errno.
//
// MPI ranks and programs with UCX's rdmacm module only look whether there is one and do without:
// there the line is for CEPHEUS_VERBOSE alone.
void note_opening(const char* path, int result) noexcept;

}  // namespace cepheus::verbs
