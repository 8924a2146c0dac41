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

}  // namespace
}  // namespace cepheus::coll
