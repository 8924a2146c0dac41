#include "wire/hello.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

RC_GTEST_PROP(Hello, SurvivesEmitAndParse, ()) {
  Hello hello;
  hello.receives = *rc::gen::arbitrary<bool>();
  hello.stamp = *rc::gen::arbitrary<std::uint32_t>();
  hello.total = *rc::gen::inRange<std::uint16_t>(1, 300);
  hello.seq = *rc::gen::inRange<std::uint16_t>(0, hello.total);
  hello.count = *rc::gen::inRange<std::size_t>(0, Hello::kMaxSwitches + 1);
  for (std::size_t i = 0; i < hello.count; ++i) {
    hello.unreachable[i] = Ipv4(*rc::gen::arbitrary<std::uint32_t>());
  }
  const auto bytes = bytes_of(hello);
  RC_ASSERT(bytes.size() == MrpHeader::kSize + hello.count * Hello::kRecord);
  const auto parsed = Hello::parse(bytes);
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->receives == hello.receives && parsed->seq == hello.seq);
  RC_ASSERT(parsed->stamp == hello.stamp);
  RC_ASSERT(parsed->total == hello.total && std::ranges::equal(parsed->list(), hello.list()));
  // A parser of registrations refuses it, because its records must be known.
  RC_ASSERT(hello.count == 0 || !MrpMessage::parse(bytes));
}

TEST(Hello, HasTheLayoutOfItsDiagram) {
  Hello hello;
  hello.receives = true;
  hello.unreachable[hello.count++] = Ipv4(10, 255, 0, 4);
  const std::vector<std::uint8_t> expected{
      3, 13, 0, 1,  0,  0,   0, 0,
      0, 1,  0, 28,                 // version, HELLO, receives; epoch, seq, total, length
      0, 0,  0, 0,  0,  0,   0, 0,  // no group, no leader
      3, 2,  0, 0,  10, 255, 0, 4};
  EXPECT_EQ(bytes_of(hello), expected);
}

TEST(Hello, RefusesOtherMessages) {
  Hello hello;
  hello.unreachable[hello.count++] = Ipv4(10, 255, 0, 4);
  const auto good = bytes_of(hello);
  ASSERT_TRUE(Hello::parse(good));
  EXPECT_FALSE(Hello::parse(with(good, 1, 1)));    // REGISTER
  EXPECT_FALSE(Hello::parse(with(good, 9, 0)));    // the first of none
  EXPECT_FALSE(Hello::parse(with(good, 11, 20)));  // not its length
  EXPECT_FALSE(Hello::parse(with(good, 20, 1)));   // a member
  EXPECT_FALSE(Hello::parse(with(good, 21, 4)));
  EXPECT_FALSE(Hello::parse(std::span(good).first(good.size() - 1)));
  EXPECT_FALSE(Hello::parse({}));
  std::array<std::uint8_t, 27> small;
  EXPECT_EQ(hello.emit(small), 0u);
}

}  // namespace
}  // namespace cepheus::wire
