#include "ompi-coll/operators.h"

namespace cepheus::ompi {

using coll::TypeGroup;

// Those of a program's common calls are first.
const Operators& operators() {
  static const Operators::Operation kOperations[] = {
      {MPI_SUM, arithmetic::Operation::kSum},   {MPI_MAX, arithmetic::Operation::kMax},
      {MPI_MIN, arithmetic::Operation::kMin},   {MPI_PROD, arithmetic::Operation::kProduct},
      {MPI_LAND, arithmetic::Operation::kAnd},  {MPI_LOR, arithmetic::Operation::kOr},
      {MPI_LXOR, arithmetic::Operation::kXor},  {MPI_BAND, arithmetic::Operation::kBitAnd},
      {MPI_BOR, arithmetic::Operation::kBitOr}, {MPI_BXOR, arithmetic::Operation::kBitXor},
  };
  static const Operators::BasicType kTypes[] = {
      {&ompi_mpi_int.dt, TypeGroup::kSigned},
      {&ompi_mpi_double.dt, TypeGroup::kFloating},
      {&ompi_mpi_long.dt, TypeGroup::kSigned},
      {&ompi_mpi_float.dt, TypeGroup::kFloating},
      {&ompi_mpi_unsigned.dt, TypeGroup::kUnsigned},
      {&ompi_mpi_unsigned_long.dt, TypeGroup::kUnsigned},
      {&ompi_mpi_long_long_int.dt, TypeGroup::kSigned},
      {&ompi_mpi_unsigned_long_long.dt, TypeGroup::kUnsigned},
      {&ompi_mpi_short.dt, TypeGroup::kSigned},
      {&ompi_mpi_unsigned_short.dt, TypeGroup::kUnsigned},
      {&ompi_mpi_signed_char.dt, TypeGroup::kSigned},
      {&ompi_mpi_unsigned_char.dt, TypeGroup::kUnsigned},
      {&ompi_mpi_int8_t.dt, TypeGroup::kSigned},
      {&ompi_mpi_int16_t.dt, TypeGroup::kSigned},
      {&ompi_mpi_int32_t.dt, TypeGroup::kSigned},
      {&ompi_mpi_int64_t.dt, TypeGroup::kSigned},
      {&ompi_mpi_uint8_t.dt, TypeGroup::kUnsigned},
      {&ompi_mpi_uint16_t.dt, TypeGroup::kUnsigned},
      {&ompi_mpi_uint32_t.dt, TypeGroup::kUnsigned},
      {&ompi_mpi_uint64_t.dt, TypeGroup::kUnsigned},
      {&ompi_mpi_integer.dt, TypeGroup::kNumber},
      {&ompi_mpi_integer1.dt, TypeGroup::kNumber},
      {&ompi_mpi_integer2.dt, TypeGroup::kNumber},
      {&ompi_mpi_integer4.dt, TypeGroup::kNumber},
      {&ompi_mpi_integer8.dt, TypeGroup::kNumber},
      {&ompi_mpi_real.dt, TypeGroup::kFloating},
      {&ompi_mpi_real4.dt, TypeGroup::kFloating},
      {&ompi_mpi_real8.dt, TypeGroup::kFloating},
      {&ompi_mpi_dblprec.dt, TypeGroup::kFloating},
      {&ompi_mpi_aint.dt, TypeGroup::kNumber},
      {&ompi_mpi_offset.dt, TypeGroup::kNumber},
      {&ompi_mpi_count.dt, TypeGroup::kNumber},
      {&ompi_mpi_c_bool.dt, TypeGroup::kBool},
      {&ompi_mpi_cxx_bool.dt, TypeGroup::kBool},
      {&ompi_mpi_byte.dt, TypeGroup::kByte},
  };
  static const Operators kAll(kOperations, kTypes);
  return kAll;
}

}  // namespace cepheus::ompi
