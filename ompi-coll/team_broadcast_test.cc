#include "ompi-coll/team_broadcast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ompi-coll/fake_clock.h"
#include "ompi-coll/fake_job.h"

namespace cepheus::coll {
namespace {

using std::chrono::milliseconds;
using testing::Each;
using testing::ElementsAre;

class Story : public testing::Test {
 protected:
  void SetUp() override { fake::use_small_sizes(); }
};

// Broadcasts of both lanes from every root.
void expect_right_broadcasts(fake::Job& job, int size) {
  for (int root = 0; root < size; ++root) {
    for (const std::size_t bytes : {10u, 200u, 300u}) {
      job.begin_all(root, bytes);
      ASSERT_TRUE(job.run()) << bytes << " bytes from " << root;
      ASSERT_THAT(job.results(), Each(OMPI_SUCCESS));
      ASSERT_TRUE(job.all_have_data());
    }
  }
}

using MistakenCount = Story;

TEST_F(MistakenCount, InTheFirstBroadcastLeavesAllAtTheSameUnit) {
  fake::Job job(3);
  job.begin(0, 0, 300);
  job.begin(1, 0, 300);
  job.begin(2, 0, 200);  // in four messages
  ASSERT_TRUE(job.run());
  EXPECT_THAT(job.results(), Each(MPI_ERR_COUNT));
  expect_right_broadcasts(job, 3);
}

TEST_F(MistakenCount, ThatARankLearnsOfLateLeavesAllAtTheSameUnit) {
  fake::Job job(3);
  expect_right_broadcasts(job, 3);
  job.begin(0, 0, 300);
  job.begin(1, 0, 200);
  ASSERT_TRUE(job.run());
  job.pass(milliseconds(10));
  EXPECT_THAT(job.results(), ElementsAre(MPI_ERR_COUNT, MPI_ERR_TRUNCATE, OMPI_SUCCESS));
  job.begin(2, 0, 200);
  ASSERT_TRUE(job.run());
  EXPECT_EQ(job.result(2), MPI_ERR_COUNT);
  expect_right_broadcasts(job, 3);
}

using LostUnit = Story;

// Rank 2 of 4 loses the first of the broadcast's three units, which the fabric acknowledges for it.
void lose_first_unit(fake::Job& job, bool attended) {
  expect_right_broadcasts(job, 4);
  job.fabric.deafen(job.last_end(2));
  job.begin_all(0, 1000, attended);
  ASSERT_TRUE(job.run());
}

TEST_F(LostUnit, IsAnErrorOnTheRankThatLacksItAlone) {
  fake::Job job(4);
  lose_first_unit(job, true);
  EXPECT_THAT(job.results(), ElementsAre(OMPI_SUCCESS, OMPI_SUCCESS, OMPI_ERROR, OMPI_SUCCESS));
  expect_right_broadcasts(job, 4);
}

TEST_F(LostUnit, OfANonBlockingBroadcastIsAnErrorOnTheRankThatLacksItAlone) {
  fake::Job job(4);
  lose_first_unit(job, false);
  EXPECT_THAT(job.results(), ElementsAre(OMPI_SUCCESS, OMPI_SUCCESS, OMPI_ERROR, OMPI_SUCCESS));
  expect_right_broadcasts(job, 4);
}

TEST_F(LostUnit, IsAnErrorOnTheRanksOfTheHostThatLacksItAlone) {
  fake::Job job(4, 2);
  lose_first_unit(job, true);
  EXPECT_THAT(job.results(), ElementsAre(OMPI_SUCCESS, OMPI_SUCCESS, OMPI_ERROR, OMPI_ERROR));
  expect_right_broadcasts(job, 4);
}

TEST_F(LostUnit, IsAnErrorOnAHostThoughTheRootDoesNotLeadItsOwn) {
  fake::Job job(4, 2);
  expect_right_broadcasts(job, 4);
  job.fabric.deafen(job.last_end(2));
  job.begin_all(1, 1000);
  ASSERT_TRUE(job.run());
  EXPECT_THAT(job.results(), ElementsAre(OMPI_SUCCESS, OMPI_SUCCESS, OMPI_ERROR, OMPI_ERROR));
  expect_right_broadcasts(job, 4);
}

}  // namespace
}  // namespace cepheus::coll
