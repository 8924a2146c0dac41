#include "pmpi/int_count.h"

#include <gmock/gmock.h>

#include <vector>

#include "pmpi/calls.h"

namespace cepheus::pmpi {
namespace {

using testing::ElementsAre;

constexpr Datatype kMade = 77;
std::vector<int> lengths;
std::vector<std::intptr_t> distances;
int frees = 0;

class IntCounts : public testing::Test {
 protected:
  IntCounts() {
    calls().Type_get_extent_x = [](Datatype, Count* lower_bound, Count* extent) {
      *lower_bound = 0;
      *extent = 8;
      return kSuccess;
    };
    calls().Type_create_hindexed = [](int blocks, const int* length, const std::intptr_t* distance,
                                      Datatype, Datatype* out) {
      lengths.assign(length, length + blocks);
      distances.assign(distance, distance + blocks);
      *out = kMade;
      return kSuccess;
    };
    calls().Type_commit = [](Datatype*) { return kSuccess; };
    calls().Type_free = [](Datatype* type) {
      frees += *type == kMade ? 1 : 0;
      return kSuccess;
    };
    frees = 0;
  }
};

TEST_F(IntCounts, ThatFitAreTheProgramsOwn) {
  for (const Count count : {0, 1, 2147483647}) {
    const IntCount in_int(count, kInt);
    EXPECT_EQ(in_int.count(), count);
    EXPECT_EQ(in_int.type(), kInt);
  }
  EXPECT_LT(IntCount(-1, kInt).count(), 0);
  EXPECT_LT(IntCount(Count{-1} << 40, kInt).count(), 0);
  EXPECT_EQ(frees, 0);
}

TEST_F(IntCounts, ThatDoNotFitAreOneElement) {
  {
    const IntCount one((Count{1} << 31) + 5, kInt);
    EXPECT_EQ(one.count(), 1);
    EXPECT_EQ(one.type(), kMade);
  }
  EXPECT_THAT(lengths, ElementsAre(1 << 30, 1 << 30, 5));
  EXPECT_THAT(distances, ElementsAre(0, std::intptr_t{8} << 30, std::intptr_t{16} << 30));
  EXPECT_EQ(frees, 1);
}

TEST_F(IntCounts, AreReportedByMpiIfItMakesNoType) {
  calls().Type_create_hindexed = [](int, const int*, const std::intptr_t*, Datatype, Datatype*) {
    return kErrNoMem;
  };
  EXPECT_LT(IntCount(Count{1} << 31, kInt).count(), 0);
  EXPECT_EQ(frees, 0);
}

}  // namespace
}  // namespace cepheus::pmpi
