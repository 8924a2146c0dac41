// The part of MPI's C interface that this library uses, as MPICH's ABI has it: MPICH, Intel MPI, Cray
// MPICH and MVAPICH agree on it. So the library needs no mpi.h, and one object serves them all.
// tests/mpi/abi_check.cc compares it with MPICH's mpi.h.
#pragma once

#include <array>
#include <cstdint>

#include "collectives/operators.h"

namespace cepheus::pmpi {

using Comm = int;
using Datatype = int;
using Request = int;
using Group = int;
using Info = int;
using Op = int;
using Errhandler = int;
using Count = std::int64_t;

struct Status {
  int count_low, count_high_and_cancelled;
  int source, tag, error;
};

inline constexpr int kSuccess = 0;
inline constexpr Comm kCommNull = 0x04000000;
inline constexpr Comm kCommWorld = 0x44000000;
inline constexpr Comm kCommSelf = 0x44000001;
inline constexpr Datatype kDatatypeNull = 0x0c000000;
inline constexpr Datatype kByte = 0x4c00010d;
inline constexpr Datatype kInt = 0x4c000405;
inline constexpr Op kOpNull = 0x18000000;
inline constexpr Op kMin = 0x58000002;
// Not the program's: their handles are constants.
constexpr bool is_mpis_operation(Op op) { return op >> 24 == kMin >> 24; }

// Operations and basic types that the library arithmetic/ has. Those of a program's common calls are
// first. A handle has its type's size in the third byte. So an MPICH with a larger MPI_REAL has
// another handle, and its own function serves that type.
using Operators = coll::Operators<Op, Datatype>;
inline constexpr auto kReductions = std::to_array<Operators::Operation>({
    {0x58000003, arithmetic::Operation::kSum},      // MPI_SUM
    {0x58000001, arithmetic::Operation::kMax},      // MPI_MAX
    {0x58000002, arithmetic::Operation::kMin},      // MPI_MIN
    {0x58000004, arithmetic::Operation::kProduct},  // MPI_PROD
    {0x58000005, arithmetic::Operation::kAnd},      // MPI_LAND
    {0x58000007, arithmetic::Operation::kOr},       // MPI_LOR
    {0x58000009, arithmetic::Operation::kXor},      // MPI_LXOR
    {0x58000006, arithmetic::Operation::kBitAnd},   // MPI_BAND
    {0x58000008, arithmetic::Operation::kBitOr},    // MPI_BOR
    {0x5800000a, arithmetic::Operation::kBitXor},   // MPI_BXOR
});
inline constexpr auto kBasicTypes = std::to_array<Operators::BasicType>({
    {0x4c000405, coll::TypeGroup::kSigned},    // MPI_INT
    {0x4c00080b, coll::TypeGroup::kFloating},  // MPI_DOUBLE
    {0x4c000807, coll::TypeGroup::kSigned},    // MPI_LONG
    {0x4c00040a, coll::TypeGroup::kFloating},  // MPI_FLOAT
    {0x4c000406, coll::TypeGroup::kUnsigned},  // MPI_UNSIGNED
    {0x4c000808, coll::TypeGroup::kUnsigned},  // MPI_UNSIGNED_LONG
    {0x4c000809, coll::TypeGroup::kSigned},    // MPI_LONG_LONG_INT
    {0x4c000819, coll::TypeGroup::kUnsigned},  // MPI_UNSIGNED_LONG_LONG
    {0x4c000203, coll::TypeGroup::kSigned},    // MPI_SHORT
    {0x4c000204, coll::TypeGroup::kUnsigned},  // MPI_UNSIGNED_SHORT
    {0x4c000118, coll::TypeGroup::kSigned},    // MPI_SIGNED_CHAR
    {0x4c000102, coll::TypeGroup::kUnsigned},  // MPI_UNSIGNED_CHAR
    {0x4c000137, coll::TypeGroup::kSigned},    // MPI_INT8_T
    {0x4c000238, coll::TypeGroup::kSigned},    // MPI_INT16_T
    {0x4c000439, coll::TypeGroup::kSigned},    // MPI_INT32_T
    {0x4c00083a, coll::TypeGroup::kSigned},    // MPI_INT64_T
    {0x4c00013b, coll::TypeGroup::kUnsigned},  // MPI_UINT8_T
    {0x4c00023c, coll::TypeGroup::kUnsigned},  // MPI_UINT16_T
    {0x4c00043d, coll::TypeGroup::kUnsigned},  // MPI_UINT32_T
    {0x4c00083e, coll::TypeGroup::kUnsigned},  // MPI_UINT64_T
    {0x4c00041b, coll::TypeGroup::kNumber},    // MPI_INTEGER
    {0x4c00012d, coll::TypeGroup::kNumber},    // MPI_INTEGER1
    {0x4c00022f, coll::TypeGroup::kNumber},    // MPI_INTEGER2
    {0x4c000430, coll::TypeGroup::kNumber},    // MPI_INTEGER4
    {0x4c000831, coll::TypeGroup::kNumber},    // MPI_INTEGER8
    {0x4c00041c, coll::TypeGroup::kFloating},  // MPI_REAL
    {0x4c000427, coll::TypeGroup::kFloating},  // MPI_REAL4
    {0x4c000829, coll::TypeGroup::kFloating},  // MPI_REAL8
    {0x4c00081f, coll::TypeGroup::kFloating},  // MPI_DOUBLE_PRECISION
    {0x4c000843, coll::TypeGroup::kNumber},    // MPI_AINT
    {0x4c000844, coll::TypeGroup::kNumber},    // MPI_OFFSET
    {0x4c000845, coll::TypeGroup::kNumber},    // MPI_COUNT
    {0x4c00013f, coll::TypeGroup::kBool},      // MPI_C_BOOL
    {0x4c000133, coll::TypeGroup::kBool},      // MPI_CXX_BOOL
    {0x4c00010d, coll::TypeGroup::kByte},      // MPI_BYTE
});
inline constexpr Operators kOperators(kReductions, kBasicTypes);
inline constexpr Request kRequestNull = 0x2c000000;
inline constexpr Info kInfoNull = 0x1c000000;
inline constexpr Errhandler kErrorsReturn = 0x54000001;
inline constexpr int kKeyvalInvalid = 0x24000000;
inline constexpr int kTagUb = 0x64400001;
inline constexpr int kAnySource = -2;
inline constexpr int kAnyTag = -1;
inline constexpr int kUndefined = -32766;
inline constexpr int kTypeShared = 1;
inline constexpr int kThreadMultiple = 3;
// Combiners.
inline constexpr int kNamed = 1, kDup = 2, kContiguous = 3, kF90Real = 15, kF90Complex = 16,
                     kF90Integer = 17;
inline constexpr int kMaxObjectName = 128;
inline constexpr int kMaxLibraryVersion = 8192;
inline constexpr std::intptr_t kInPlace = -1;
// Error classes.
inline constexpr int kErrCount = 2, kErrRoot = 7, kErrTruncate = 14, kErrOther = 15,
                     kErrRequest = 19, kErrNoMem = 34;

inline constexpr char kName[] = "mpich";
inline constexpr char kAbi[] = "MPICH";
inline constexpr const char* kVersions[] = {"MPICH", "Intel(R) MPI", "MVAPICH"};
inline constexpr const char* kLibraries[] = {"libmpich.so.12", "libmpi.so.12"};

inline constexpr const char* kFaultTolerance = nullptr;

// Handles of this ABI are numbers.
template <typename Find>
constexpr bool find_handles(Find) {
  return true;
}

}  // namespace cepheus::pmpi
