#include "switch-emulator/live/datapath/due_links.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace cepheus::live {
namespace {

wire::Instant at(int us) { return wire::Instant(std::chrono::microseconds(us)); }

TEST(DueLinks, ForgetATimeThatAnotherReplaces) {
  DueLinks due;
  due.resize(3);
  EXPECT_EQ(due.next().at, wire::kNever);
  due.set(1, at(5));
  due.set(2, at(5));
  due.set(0, at(9));
  EXPECT_EQ(due.next().link, 1u);
  due.set(1, at(20));
  EXPECT_EQ(due.next().link, 2u);
  due.set(2, wire::kNever);
  EXPECT_EQ(due.next().link, 0u);
  due.set(1, at(5));
  EXPECT_EQ(due.next().link, 1u);
}

RC_GTEST_PROP(DueLinks, NameTheFirstOfAll, ()) {
  constexpr std::uint32_t kLinks = 5;
  DueLinks due;
  due.resize(kLinks);
  std::vector<wire::Instant> expected(kLinks, wire::kNever);
  for (const auto& [link, time] : *rc::gen::arbitrary<std::vector<std::pair<unsigned, int>>>()) {
    const wire::Instant to = time % 4 == 0 ? wire::kNever : at(time % 10 + 10);
    expected[link % kLinks] = to;
    due.set(link % kLinks, to);
    const auto first = std::ranges::min_element(expected);
    RC_ASSERT(due.earliest() <= *first);
    RC_ASSERT(due.next().at == *first);
    if (*first == wire::kNever) continue;
    RC_ASSERT(due.next().link == static_cast<std::uint32_t>(first - expected.begin()));
  }
}

}  // namespace
}  // namespace cepheus::live
