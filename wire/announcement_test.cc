#include "wire/announcement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

constexpr Ipv4 kHost(10, 0, 0, 2), kOther(10, 0, 0, 3);

std::vector<std::uint8_t> bytes_of(const std::vector<AnnouncedTarget>& targets) {
  std::vector<std::uint8_t> out(Announcement::size_of(targets.size()), 0xA5);
  EXPECT_EQ(Announcement::emit(targets, out), out.size());
  return out;
}

RC_GTEST_PROP(Announcement, SurvivesEmitAndParse, ()) {
  std::vector<AnnouncedTarget> targets(*rc::gen::inRange<std::size_t>(0, 200));
  for (AnnouncedTarget& target : targets) {
    target = {Ipv4(*rc::gen::arbitrary<std::uint32_t>()), *rc::gen::arbitrary<std::uint32_t>(),
              *rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>()};
  }
  const auto bytes = bytes_of(targets);
  const auto parsed = Announcement::parse(bytes);
  RC_ASSERT(parsed.has_value() && parsed->count() == targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) RC_ASSERT((*parsed)[i] == targets[i]);
}

TEST(Announcement, HasTheLayoutOfItsDiagram) {
  const std::vector<std::uint8_t> expected{0,  1, 0, 0,                    // members
                                           10, 0, 0, 2,                    // IPv4
                                           3,  4, 5, 6,                    // rkey
                                           7,  8, 9, 10, 11, 12, 13, 14,   // virtual address
                                           0,  0, 0, 0,  0,  0,  15, 16};  // length
  EXPECT_EQ(bytes_of({{kHost, 0x03040506, 0x0708090A0B0C0D0E, 0x0F10}}), expected);
}

TEST(Announcement, OfAnyOtherLengthIsRefused) {
  const auto bytes = bytes_of({{kHost, 1, 2, 3}, {kOther, 4, 5, 6}});
  expect_refused_if_short<Announcement>(bytes);
  auto longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(Announcement::parse(longer));
  auto later = bytes;
  later[3] = 1;
  EXPECT_FALSE(Announcement::parse(later)) << "of a later version, perhaps";
  std::vector<std::uint8_t> small(bytes.size() - 1);
  const AnnouncedTarget targets[] = {{kHost, 1, 2, 3}, {kOther, 4, 5, 6}};
  EXPECT_EQ(Announcement::emit(targets, small), 0u);
}

TEST(Announcement, NamesEachMembersTarget) {
  const auto bytes = bytes_of({{kHost, 1, 2, 3}, {kOther, 4, ~std::uint64_t{0}, 2}});
  const auto parsed = Announcement::parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->find(kHost), (AnnouncedTarget{kHost, 1, 2, 3}));
  EXPECT_EQ(parsed->find(kOther), std::nullopt) << "past the end of the address space";
  EXPECT_EQ(parsed->find(Ipv4(10, 0, 0, 4)), std::nullopt);
}

}  // namespace
}  // namespace cepheus::wire
