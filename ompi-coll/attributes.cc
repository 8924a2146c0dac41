#include "ompi-coll/attributes.h"

#include "collectives/communicators.h"
#include "ompi-coll/host_objects.h"

namespace cepheus::ompi {

namespace {

int comm_keyval = MPI_KEYVAL_INVALID;
int self_keyval = MPI_KEYVAL_INVALID;

extern "C" int cepheus_on_comm_free(MPI_Comm, int, void* value, void*) {
  coll::free_communicator(*static_cast<coll::CommunicatorState*>(value));
  return MPI_SUCCESS;
}

extern "C" int cepheus_on_finalize(MPI_Comm, int, void*, void*) {
  coll::finalize_communicators();
  return MPI_SUCCESS;
}

int make_keyval(int* keyval, MPI_Comm_delete_attr_function* on_delete) {
  if (*keyval != MPI_KEYVAL_INVALID) return OMPI_SUCCESS;
  ompi_attribute_fn_ptr_union_t copy, remove;
  // A duplicate has a module, and so a state, of its own.
  copy.attr_communicator_copy_fn = [](MPI_Comm, int, void*, void*, void*, int* flag, auto...) {
    *flag = 0;
    return MPI_SUCCESS;
  };
  remove.attr_communicator_delete_fn = on_delete;
  return ompi_attr_create_keyval(COMM_ATTR, copy, remove, keyval, nullptr, 0, nullptr);
}

}  // namespace

int attach(ompi_communicator_t* comm, coll::CommunicatorState& state) {
  int rc = make_keyval(&comm_keyval, cepheus_on_comm_free);
  // For communicators that are never freed.
  if (rc == OMPI_SUCCESS && self_keyval == MPI_KEYVAL_INVALID && coll::host::will_finalize()) {
    rc = make_keyval(&self_keyval, cepheus_on_finalize);
    ompi_communicator_t* self = &ompi_mpi_comm_self.comm;
    if (rc == OMPI_SUCCESS)
      rc = ompi_attr_set_c(COMM_ATTR, self, &self->c_keyhash, self_keyval, nullptr, false);
  }
  if (rc == OMPI_SUCCESS)
    rc = ompi_attr_set_c(COMM_ATTR, comm, &comm->c_keyhash, comm_keyval, &state, false);
  if (rc == OMPI_SUCCESS) coll::watch_communicator(state);
  return rc;
}

}  // namespace cepheus::ompi
