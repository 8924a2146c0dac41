#include "wire/splitmix.h"

#include <gtest/gtest.h>

namespace cepheus::wire {
namespace {

// The first outputs of the authors' generator with seed 1234567.
TEST(SplitMix, GivesTheAuthorsNumbers) {
  SplitMix random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(SplitMix, CountsItsOutputs) {
  SplitMix random(42);
  for (std::uint64_t n = 0; n < 4; ++n) EXPECT_EQ(splitmix(42, n), random.next());
}

}  // namespace
}  // namespace cepheus::wire
