#include "pmpi/operations.h"

#include <gtest/gtest.h>

#include <vector>

#include "pmpi/calls.h"

namespace cepheus::pmpi {
namespace {

std::vector<Op> freed;

class Operations : public testing::Test {
 protected:
  void SetUp() override {
    freed.clear();
    calls().Op_free = [](Op* which) {
      freed.push_back(*which);
      return kSuccess;
    };
  }
  void TearDown() override { calls() = {}; }

  const Op op = kMin + 1;
};

TEST_F(Operations, ThatNoCallUsesAreFreedByMpi) { EXPECT_FALSE(free_later(op)); }

TEST_F(Operations, FreedDuringCallsGoWithTheLastOne) {
  hold_operation(op);
  hold_operation(op);
  EXPECT_TRUE(free_later(op));
  release_operation(op);
  EXPECT_TRUE(freed.empty());
  release_operation(op);
  EXPECT_EQ(freed, std::vector<Op>{op});
  EXPECT_FALSE(free_later(op));
}

TEST_F(Operations, ThatTheProgramKeepsStay) {
  hold_operation(op);
  release_operation(op);
  EXPECT_TRUE(freed.empty());
}

}  // namespace
}  // namespace cepheus::pmpi
