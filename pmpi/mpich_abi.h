// The part of MPI's C interface that this library uses, as MPICH's ABI has it: MPICH, Intel MPI, Cray
// MPICH and MVAPICH agree on it. So the library needs no mpi.h, and one object serves them all.
// tests/mpi/abi_check.cc compares it with MPICH's mpi.h.
#pragma once

#include <cstdint>

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
