#include "ompi-coll/operators.h"

#include <gtest/gtest.h>

namespace cepheus::ompi {
namespace {

TEST(Operators, HaveOpenMpisHandles) {
  EXPECT_TRUE(operators().find(MPI_SUM, MPI_DOUBLE, 8)->is_floating());
  EXPECT_FALSE(operators().find(MPI_SUM, MPI_INTEGER, 4)->is_floating());
  EXPECT_TRUE(operators().find(MPI_BXOR, MPI_BYTE, 1));
  EXPECT_TRUE(operators().find(MPI_LAND, MPI_C_BOOL, 1));
  EXPECT_TRUE(operators().find(MPI_MAX, MPI_COUNT, 8));
}

TEST(Operators, LeaveTheRestToOpenMpi) {
  EXPECT_FALSE(operators().find(MPI_SUM, MPI_BYTE, 1));
  EXPECT_FALSE(operators().find(MPI_SUM, MPI_CHAR, 1));
  EXPECT_FALSE(operators().find(MPI_LAND, MPI_AINT, 8));
  EXPECT_FALSE(operators().find(MPI_SUM, MPI_LONG_DOUBLE, 16));
  EXPECT_FALSE(operators().find(MPI_SUM, MPI_C_FLOAT_COMPLEX, 8));
  EXPECT_FALSE(operators().find(MPI_MAXLOC, MPI_2INT, 8));
  EXPECT_FALSE(operators().find(MPI_LOR, MPI_LOGICAL, 4));
  ompi_datatype_t copy = ompi_mpi_double.dt;
  EXPECT_FALSE(operators().find(MPI_SUM, &copy, 8));
}

}  // namespace
}  // namespace cepheus::ompi
