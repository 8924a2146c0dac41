// Each ABI's header in pmpi/ agrees with its mpi.h: tests compile this, and nothing runs.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

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

// Operations and basic types of the library arithmetic/. Open MPI's handles are addresses: here its
// mpi.h and our table name the same object.
#ifdef CEPHEUS_OPENMPI
#define EXPANDED(handle) #handle
#define HANDLE(handle) EXPANDED(handle)
template <typename Meaning>
constexpr bool is_entry(const Named<Meaning>& entry, std::string_view handle, Meaning meaning) {
  const std::string_view symbol(entry.symbol);
  const auto at = handle.find(symbol);
  return at != handle.npos && handle[at - 1] == '(' && handle[at + symbol.size()] == ')' &&
         entry.meaning == meaning;
}
#else
#define HANDLE(handle) handle
constexpr bool is_entry(const Operators::Operation& entry, Op op,
                        cepheus::arithmetic::Operation operation) {
  return entry.op == op && entry.operation == operation;
}
constexpr bool is_entry(const Operators::BasicType& entry, Datatype type,
                        cepheus::coll::TypeGroup group) {
  return entry.type == type && entry.group == group;
}
#endif
template <typename Table, typename Handle, typename Meaning>
constexpr bool has(const Table& table, Handle handle, Meaning meaning) {
  return std::ranges::count_if(
             table, [=](const auto& entry) { return is_entry(entry, handle, meaning); }) == 1;
}
#define OPERATION(handle, meaning) \
  static_assert(has(kReductions, HANDLE(handle), cepheus::arithmetic::Operation::meaning))
#define TYPE(handle, group) \
  static_assert(has(kBasicTypes, HANDLE(handle), cepheus::coll::TypeGroup::group))
static_assert(kReductions.size() == 10 && kBasicTypes.size() == 35);
OPERATION(MPI_SUM, kSum);
OPERATION(MPI_MAX, kMax);
OPERATION(MPI_MIN, kMin);
OPERATION(MPI_PROD, kProduct);
OPERATION(MPI_LAND, kAnd);
OPERATION(MPI_LOR, kOr);
OPERATION(MPI_LXOR, kXor);
OPERATION(MPI_BAND, kBitAnd);
OPERATION(MPI_BOR, kBitOr);
OPERATION(MPI_BXOR, kBitXor);
TYPE(MPI_INT, kSigned);
TYPE(MPI_LONG, kSigned);
TYPE(MPI_LONG_LONG_INT, kSigned);
TYPE(MPI_SHORT, kSigned);
TYPE(MPI_SIGNED_CHAR, kSigned);
TYPE(MPI_INT8_T, kSigned);
TYPE(MPI_INT16_T, kSigned);
TYPE(MPI_INT32_T, kSigned);
TYPE(MPI_INT64_T, kSigned);
TYPE(MPI_UNSIGNED, kUnsigned);
TYPE(MPI_UNSIGNED_LONG, kUnsigned);
TYPE(MPI_UNSIGNED_LONG_LONG, kUnsigned);
TYPE(MPI_UNSIGNED_SHORT, kUnsigned);
TYPE(MPI_UNSIGNED_CHAR, kUnsigned);
TYPE(MPI_UINT8_T, kUnsigned);
TYPE(MPI_UINT16_T, kUnsigned);
TYPE(MPI_UINT32_T, kUnsigned);
TYPE(MPI_UINT64_T, kUnsigned);
TYPE(MPI_INTEGER, kNumber);
TYPE(MPI_INTEGER1, kNumber);
TYPE(MPI_INTEGER2, kNumber);
TYPE(MPI_INTEGER4, kNumber);
TYPE(MPI_INTEGER8, kNumber);
TYPE(MPI_AINT, kNumber);
TYPE(MPI_OFFSET, kNumber);
TYPE(MPI_COUNT, kNumber);
TYPE(MPI_DOUBLE, kFloating);
TYPE(MPI_FLOAT, kFloating);
TYPE(MPI_REAL, kFloating);
TYPE(MPI_REAL4, kFloating);
TYPE(MPI_REAL8, kFloating);
TYPE(MPI_DOUBLE_PRECISION, kFloating);
TYPE(MPI_C_BOOL, kBool);
TYPE(MPI_CXX_BOOL, kBool);
TYPE(MPI_BYTE, kByte);
