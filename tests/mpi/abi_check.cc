// Each ABI's header in pmpi/ agrees with its mpi.h: tests compile this, and nothing runs.
#include <mpi.h>

#include <cstddef>

#include "pmpi/mpi_abi.h"

using namespace cepheus::pmpi;

#define SAME(ours, theirs) static_assert((ours) == (int)(theirs))
SAME(kSuccess, MPI_SUCCESS);
#ifndef CEPHEUS_OPENMPI  // its handles are addresses
SAME(kCommNull, MPI_COMM_NULL);
SAME(kCommWorld, MPI_COMM_WORLD);
SAME(kCommSelf, MPI_COMM_SELF);
SAME(kDatatypeNull, MPI_DATATYPE_NULL);
SAME(kByte, MPI_BYTE);
SAME(kInt, MPI_INT);
SAME(kOpNull, MPI_OP_NULL);
SAME(kMin, MPI_MIN);
static_assert(is_mpis_operation(MPI_MAX) && is_mpis_operation(MPI_SUM));
static_assert(is_mpis_operation(MPI_MAXLOC) && is_mpis_operation(MPI_NO_OP));
static_assert(!is_mpis_operation(MPI_OP_NULL));
SAME(kRequestNull, MPI_REQUEST_NULL);
SAME(kInfoNull, MPI_INFO_NULL);
SAME(kErrorsReturn, MPI_ERRORS_RETURN);
#endif
SAME(kKeyvalInvalid, MPI_KEYVAL_INVALID);
SAME(kTagUb, MPI_TAG_UB);
SAME(kAnySource, MPI_ANY_SOURCE);
SAME(kAnyTag, MPI_ANY_TAG);
SAME(kUndefined, MPI_UNDEFINED);
SAME(kTypeShared, MPI_COMM_TYPE_SHARED);
SAME(kThreadMultiple, MPI_THREAD_MULTIPLE);
SAME(kNamed, MPI_COMBINER_NAMED);
SAME(kDup, MPI_COMBINER_DUP);
SAME(kContiguous, MPI_COMBINER_CONTIGUOUS);
SAME(kF90Real, MPI_COMBINER_F90_REAL);
SAME(kF90Complex, MPI_COMBINER_F90_COMPLEX);
SAME(kF90Integer, MPI_COMBINER_F90_INTEGER);
SAME(kMaxObjectName, MPI_MAX_OBJECT_NAME);
SAME(kMaxLibraryVersion, MPI_MAX_LIBRARY_VERSION_STRING);
SAME(kErrCount, MPI_ERR_COUNT);
SAME(kErrRoot, MPI_ERR_ROOT);
SAME(kErrTruncate, MPI_ERR_TRUNCATE);
SAME(kErrOther, MPI_ERR_OTHER);
SAME(kErrRequest, MPI_ERR_REQUEST);
SAME(kErrNoMem, MPI_ERR_NO_MEM);

static_assert(sizeof(Status) == sizeof(MPI_Status));
static_assert(offsetof(Status, source) == offsetof(MPI_Status, MPI_SOURCE));
static_assert(offsetof(Status, tag) == offsetof(MPI_Status, MPI_TAG));
static_assert(offsetof(Status, error) == offsetof(MPI_Status, MPI_ERROR));
static_assert(sizeof(Comm) == sizeof(MPI_Comm) && sizeof(Datatype) == sizeof(MPI_Datatype));
static_assert(sizeof(Request) == sizeof(MPI_Request) && sizeof(Group) == sizeof(MPI_Group));
static_assert(sizeof(Info) == sizeof(MPI_Info) && sizeof(Errhandler) == sizeof(MPI_Errhandler));
static_assert(sizeof(Op) == sizeof(MPI_Op));
static_assert(sizeof(Count) == sizeof(MPI_Count) && sizeof(std::intptr_t) == sizeof(MPI_Aint));
