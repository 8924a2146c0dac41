// The part of MPI's C interface that this library uses, as Open MPI 4 and 5 have it. So the library
// needs no mpi.h, and one object serves both. tests/mpi/abi_check.cc compares it with Open MPI's mpi.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "collectives/operators.h"

namespace cepheus::pmpi {

using Comm = struct OpenMpiComm*;
using Datatype = struct OpenMpiDatatype*;
using Request = struct OpenMpiRequest*;
using Group = struct OpenMpiGroup*;
using Info = struct OpenMpiInfo*;
using Op = struct OpenMpiOp*;
using Errhandler = struct OpenMpiErrhandler*;
using Count = long long;

struct Status {
  int source, tag, error;
  int cancelled;
  std::size_t bytes;
};

// Addresses of MPI's own objects. find_handles() looks them up when the program runs: processes
// without MPI, such as mpirun's shells, preload this library, too.
inline Comm kCommNull, kCommWorld, kCommSelf;
inline Datatype kDatatypeNull, kByte, kInt;
inline Op kOpNull, kMin;
inline Request kRequestNull;
inline Info kInfoNull;
inline Errhandler kErrorsReturn;

inline constexpr std::array kOperations{
    "ompi_mpi_op_max",   "ompi_mpi_op_min",    "ompi_mpi_op_sum",    "ompi_mpi_op_prod",
    "ompi_mpi_op_land",  "ompi_mpi_op_band",   "ompi_mpi_op_lor",    "ompi_mpi_op_bor",
    "ompi_mpi_op_lxor",  "ompi_mpi_op_bxor",   "ompi_mpi_op_maxloc", "ompi_mpi_op_minloc",
    "ompi_mpi_op_no_op", "ompi_mpi_op_replace"};
inline std::array<Op, kOperations.size()> operations{};
// Not the program's.
inline bool is_mpis_operation(Op op) {
  return std::find(operations.begin(), operations.end(), op) != operations.end();
}

// Operations and basic types that the library arithmetic/ has. Those of a program's common calls are
// first.
using Operators = coll::Operators<Op, Datatype>;
template <typename Meaning>
struct Named {
  const char* symbol;
  Meaning meaning;
};
inline constexpr auto kReductions = std::to_array<Named<arithmetic::Operation>>({
    {"ompi_mpi_op_sum", arithmetic::Operation::kSum},
    {"ompi_mpi_op_max", arithmetic::Operation::kMax},
    {"ompi_mpi_op_min", arithmetic::Operation::kMin},
    {"ompi_mpi_op_prod", arithmetic::Operation::kProduct},
    {"ompi_mpi_op_land", arithmetic::Operation::kAnd},
    {"ompi_mpi_op_lor", arithmetic::Operation::kOr},
    {"ompi_mpi_op_lxor", arithmetic::Operation::kXor},
    {"ompi_mpi_op_band", arithmetic::Operation::kBitAnd},
    {"ompi_mpi_op_bor", arithmetic::Operation::kBitOr},
    {"ompi_mpi_op_bxor", arithmetic::Operation::kBitXor},
});
inline constexpr auto kBasicTypes = std::to_array<Named<coll::TypeGroup>>({
    {"ompi_mpi_int", coll::TypeGroup::kSigned},
    {"ompi_mpi_double", coll::TypeGroup::kFloating},
    {"ompi_mpi_long", coll::TypeGroup::kSigned},
    {"ompi_mpi_float", coll::TypeGroup::kFloating},
    {"ompi_mpi_unsigned", coll::TypeGroup::kUnsigned},
    {"ompi_mpi_unsigned_long", coll::TypeGroup::kUnsigned},
    {"ompi_mpi_long_long_int", coll::TypeGroup::kSigned},
    {"ompi_mpi_unsigned_long_long", coll::TypeGroup::kUnsigned},
    {"ompi_mpi_short", coll::TypeGroup::kSigned},
    {"ompi_mpi_unsigned_short", coll::TypeGroup::kUnsigned},
    {"ompi_mpi_signed_char", coll::TypeGroup::kSigned},
    {"ompi_mpi_unsigned_char", coll::TypeGroup::kUnsigned},
    {"ompi_mpi_int8_t", coll::TypeGroup::kSigned},
    {"ompi_mpi_int16_t", coll::TypeGroup::kSigned},
    {"ompi_mpi_int32_t", coll::TypeGroup::kSigned},
    {"ompi_mpi_int64_t", coll::TypeGroup::kSigned},
    {"ompi_mpi_uint8_t", coll::TypeGroup::kUnsigned},
    {"ompi_mpi_uint16_t", coll::TypeGroup::kUnsigned},
    {"ompi_mpi_uint32_t", coll::TypeGroup::kUnsigned},
    {"ompi_mpi_uint64_t", coll::TypeGroup::kUnsigned},
    {"ompi_mpi_integer", coll::TypeGroup::kNumber},
    {"ompi_mpi_integer1", coll::TypeGroup::kNumber},
    {"ompi_mpi_integer2", coll::TypeGroup::kNumber},
    {"ompi_mpi_integer4", coll::TypeGroup::kNumber},
    {"ompi_mpi_integer8", coll::TypeGroup::kNumber},
    {"ompi_mpi_real", coll::TypeGroup::kFloating},
    {"ompi_mpi_real4", coll::TypeGroup::kFloating},
    {"ompi_mpi_real8", coll::TypeGroup::kFloating},
    {"ompi_mpi_dblprec", coll::TypeGroup::kFloating},
    {"ompi_mpi_aint", coll::TypeGroup::kNumber},
    {"ompi_mpi_offset", coll::TypeGroup::kNumber},
    {"ompi_mpi_count", coll::TypeGroup::kNumber},
    {"ompi_mpi_c_bool", coll::TypeGroup::kBool},
    {"ompi_mpi_cxx_bool", coll::TypeGroup::kBool},
    {"ompi_mpi_byte", coll::TypeGroup::kByte},
});
inline std::array<Operators::Operation, kReductions.size()> reductions{};
inline std::array<Operators::BasicType, kBasicTypes.size()> basic_types{};
inline constexpr Operators kOperators(reductions, basic_types);

// `find`: the address of a symbol, or null. False: one is missing.
template <typename Find>
bool find_handles(Find find) {
  const auto set = [&](auto& handle, const char* symbol) {
    handle = reinterpret_cast<std::remove_reference_t<decltype(handle)>>(find(symbol));
    return handle != nullptr;
  };
  for (std::size_t i = 0; i < operations.size(); ++i) (void)set(operations[i], kOperations[i]);
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    reductions[i].operation = kReductions[i].meaning;
    (void)set(reductions[i].op, kReductions[i].symbol);
  }
  for (std::size_t i = 0; i < basic_types.size(); ++i) {
    basic_types[i].group = kBasicTypes[i].meaning;
    (void)set(basic_types[i].type, kBasicTypes[i].symbol);
  }
  return set(kCommNull, "ompi_mpi_comm_null") && set(kCommWorld, "ompi_mpi_comm_world") &&
         set(kCommSelf, "ompi_mpi_comm_self") && set(kDatatypeNull, "ompi_mpi_datatype_null") &&
         set(kByte, "ompi_mpi_byte") && set(kInt, "ompi_mpi_int") &&
         set(kOpNull, "ompi_mpi_op_null") && set(kMin, "ompi_mpi_op_min") &&
         set(kRequestNull, "ompi_request_null") && set(kInfoNull, "ompi_mpi_info_null") &&
         set(kErrorsReturn, "ompi_mpi_errors_return");
}

inline constexpr int kSuccess = 0;
inline constexpr int kKeyvalInvalid = -1;
inline constexpr int kTagUb = 0;
inline constexpr int kAnySource = -1;
inline constexpr int kAnyTag = -1;
inline constexpr int kUndefined = -32766;
inline constexpr int kTypeShared = 0;
inline constexpr int kThreadMultiple = 3;
// Combiners.
inline constexpr int kNamed = 0, kDup = 1, kContiguous = 2, kF90Real = 14, kF90Complex = 15,
                     kF90Integer = 16;
inline constexpr int kMaxObjectName = 64;
inline constexpr int kMaxLibraryVersion = 256;
inline constexpr std::intptr_t kInPlace = 1;
// Error classes.
inline constexpr int kErrCount = 2, kErrRoot = 8, kErrTruncate = 15, kErrOther = 16,
                     kErrRequest = 7, kErrNoMem = 39;

inline constexpr char kName[] = "open mpi";
inline constexpr char kAbi[] = "Open MPI";
inline constexpr const char* kVersions[] = {"Open MPI"};  // in MPI_Get_library_version
inline constexpr const char* kLibraries[] = {"libmpi.so.40"};
inline constexpr const char* kFaultTolerance = "ompi_ftmpi_enabled";  // a bool, from Open MPI 5 on

}  // namespace cepheus::pmpi
