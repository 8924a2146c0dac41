// MPI's own functions, found when the program runs: this library links no MPI.
#pragma once

#include <string>

#include "pmpi/mpi_abi.h"

namespace cepheus::pmpi {

using CopyAttribute = int (*)(Comm, int, void*, void*, void*, int*);
using DeleteAttribute = int (*)(Comm, int, void*, void*);
using QueryRequest = int (*)(void*, Status*);
using FreeRequest = int (*)(void*);
using CancelRequest = int (*)(void*, int);

// Each is PMPI_<name>.
struct Calls {
  int (*Abort)(Comm, int);
  int (*Allgather)(const void*, int, Datatype, void*, int, Datatype, Comm);
  int (*Allreduce)(const void*, void*, int, Datatype, Op, Comm);
  int (*Cancel)(Request*);
  int (*Comm_call_errhandler)(Comm, int);
  int (*Comm_create)(Comm, Group, Comm*);
  int (*Comm_create_keyval)(CopyAttribute, DeleteAttribute, int*, void*);
  int (*Comm_dup)(Comm, Comm*);
  int (*Comm_free)(Comm*);
  int (*Comm_get_attr)(Comm, int, void*, int*);
  int (*Comm_get_name)(Comm, char*, int*);
  int (*Comm_group)(Comm, Group*);
  int (*Comm_rank)(Comm, int*);
  int (*Comm_set_attr)(Comm, int, void*);
  int (*Comm_set_errhandler)(Comm, Errhandler);
  int (*Comm_size)(Comm, int*);
  int (*Comm_split_type)(Comm, int, int, Info, Comm*);
  int (*Comm_test_inter)(Comm, int*);
  int (*Error_class)(int, int*);
  int (*Get_elements_x)(const Status*, Datatype, Count*);
  int (*Grequest_complete)(Request);
  int (*Grequest_start)(QueryRequest, FreeRequest, CancelRequest, void*, Request*);
  int (*Group_free)(Group*);
  int (*Group_translate_ranks)(Group, int, const int*, Group, int*);
  int (*Iprobe)(int, int, Comm, int*, Status*);
  int (*Irecv)(void*, int, Datatype, int, int, Comm, Request*);
  int (*Isend)(const void*, int, Datatype, int, int, Comm, Request*);
  int (*Op_free)(Op*);
  int (*Pack)(const void*, int, Datatype, void*, int, int*, Comm);
  int (*Pack_size)(int, Datatype, Comm, int*);
  int (*Query_thread)(int*);
  int (*Reduce_local)(const void*, void*, int, Datatype, Op);
  int (*Request_free)(Request*);
  int (*Test)(Request*, int*, Status*);
  int (*Testany)(int, Request*, int*, int*, Status*);
  int (*Type_commit)(Datatype*);
  int (*Type_create_hindexed)(int, const int*, const std::intptr_t*, Datatype, Datatype*);
  int (*Type_free)(Datatype*);
  int (*Type_get_contents)(Datatype, int, int, int, int*, std::intptr_t*, Datatype*);
  int (*Type_get_envelope)(Datatype, int*, int*, int*, int*);
  int (*Type_get_extent_x)(Datatype, Count*, Count*);
  int (*Type_get_true_extent_x)(Datatype, Count*, Count*);
  int (*Type_size_x)(Datatype, Count*);
  int (*Unpack)(const void*, int, int*, void*, int, Datatype, Comm);
  // Null before MPI 4. Type_get_envelope refuses types that were made with large counts.
  int (*Type_get_envelope_c)(Datatype, Count*, Count*, Count*, Count*, int*);
};

// Empty until find_calls() has returned true.
Calls& calls();
// Whether the program continues when a rank has died (ULFM).
bool is_fault_tolerant();
// False if one is missing, or if the MPI library has another ABI.
bool find_calls();
// The definition of `name` behind this library: the next tool's, or MPI's. Null: there is none.
void* next_definition(const char* name);
// The next definition of "MPI_<name>" is a tool's, not MPI's.
bool is_next_a_tools(const std::string& name);
// This process's Open MPI has loaded coll/cepheus, and chosen it for MPI_COMM_WORLD.
bool component_serves();

// For MPI_Comm_create_keyval: Open MPI takes no null function.
inline int copy_nothing(Comm, int, void*, void*, void*, int* copies) {
  *copies = 0;
  return kSuccess;
}

}  // namespace cepheus::pmpi
