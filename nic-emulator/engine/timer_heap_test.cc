#include "nic-emulator/engine/timer_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace cepheus::rnic {
namespace {

struct Element {
  TimerSlot slot;
};
using Heap = TimerHeap<Element, &Element::slot>;

wire::Instant at(int us) { return wire::Instant(std::chrono::microseconds(us)); }

TEST(TimerHeap, GivesTheEarliestFirstAndOnlyWhenDue) {
  std::array<Element, 3> e;
  Heap heap;
  EXPECT_EQ(heap.earliest(), wire::kNever);
  heap.schedule(e[0], at(30));
  heap.schedule(e[1], at(10));
  heap.schedule(e[2], at(20));
  EXPECT_EQ(heap.pop_due(at(9)), nullptr);
  EXPECT_EQ(heap.pop_due(at(30)), &e[1]);
  EXPECT_EQ(heap.pop_due(at(30)), &e[2]);
  EXPECT_EQ(heap.pop_due(at(30)), &e[0]);
  EXPECT_TRUE(heap.empty());
}

TEST(TimerHeap, AgreesWithASortedListUnderRandomChanges) {
  std::mt19937_64 random(7);
  std::array<Element, 50> elements;
  Heap heap;
  for (int round = 0; round < 20000; ++round) {
    Element& e = elements[random() % elements.size()];
    if (random() % 3 == 0) {
      heap.cancel(e);
    } else {
      heap.schedule(e, at(static_cast<int>(random() % 1000)));
    }
    heap.check_consistent();
    wire::Instant earliest = wire::kNever;
    for (const Element& x : elements) {
      EXPECT_EQ(x.slot.scheduled(), x.slot.due != wire::kNever);
      earliest = std::min(earliest, x.slot.due);
    }
    ASSERT_EQ(heap.earliest(), earliest);
  }
}

}  // namespace
}  // namespace cepheus::rnic
