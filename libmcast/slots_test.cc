#include "libmcast/slots.h"

#include <gtest/gtest.h>

#include <set>

namespace cepheus::mcast {
namespace {

TEST(Slots, HandsOutEveryNumberOnce) {
  Slots slots(5);
  std::set<std::uint32_t> taken;
  while (!slots.is_empty()) taken.insert(slots.take());
  EXPECT_EQ(taken, (std::set<std::uint32_t>{0, 1, 2, 3, 4}));
}

TEST(Slots, HandsOutAgainWhatWasGivenBack) {
  Slots slots(2);
  slots.take();
  const std::uint32_t second = slots.take();
  EXPECT_TRUE(slots.is_empty());
  slots.give_back(second);
  EXPECT_EQ(slots.take(), second);
}

}  // namespace
}  // namespace cepheus::mcast
