/* On rank 1 MPI makes no attribute, as if it had no memory. A library to preload. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

typedef int Create(MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function*, int*, void*);

__attribute__((visibility("default"))) int PMPI_Comm_create_keyval(
    MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* delete, int* key,
    void* extra) {
  const char* rank = getenv("PMI_RANK");
  if (rank != NULL && strcmp(rank, "1") == 0) return MPI_ERR_OTHER;
  Create* create = NULL;
  *(void**)&create = dlsym(RTLD_NEXT, "PMPI_Comm_create_keyval");
  return create(copy, delete, key, extra);
}
