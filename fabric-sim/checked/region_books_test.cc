#include "fabric-sim/checked/region_books.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cepheus::sim {
namespace {

constexpr std::size_t kGuard = 8;

// Member 0 writes message 0 to bytes 0 to 9 of member 1's region, message 1 to bytes 5 to 14.
class RegionBooksTest : public testing::Test {
 protected:
  RegionBooksTest() {
    plan_.members.resize(2);
    plan_.region_bytes = 20;
    plan_.messages = {{0, 10, MessageKind::kWrite, 0}, {0, 10, MessageKind::kWriteImm, 5}};
    books_.attach(1, memory_, kGuard);
  }
  // A message's content: its number in every byte.
  void write(std::size_t message) {
    const MessagePlan& m = plan_.messages[message];
    std::fill_n(memory_.begin() + static_cast<std::ptrdiff_t>(kGuard + m.offset), m.bytes,
                static_cast<std::uint8_t>(message));
  }

  GroupPlan plan_;
  std::vector<std::uint8_t> memory_ =
      std::vector<std::uint8_t>(2 * kGuard + 20, RegionBooks::kUntouched);
  RegionBooks books_{plan_, [](std::size_t message, std::span<std::uint8_t> out) {
                       std::ranges::fill(out, static_cast<std::uint8_t>(message));
                     }};
  const std::vector<bool> none_{false, false}, first_{true, false}, both_{true, true};
};

TEST_F(RegionBooksTest, ShowAWriteOrALaterOneOverIt) {
  EXPECT_FALSE(books_.shows(1, 0, first_));
  write(0);
  EXPECT_TRUE(books_.shows(1, 0, first_));
  EXPECT_FALSE(books_.shows(1, 1, both_));
  write(1);
  EXPECT_FALSE(books_.shows(1, 0, first_)) << "no WRITE covers it";
  EXPECT_TRUE(books_.shows(1, 0, both_));
}

TEST_F(RegionBooksTest, ShowNoWriteWithAMissingByte) {
  EXPECT_FALSE(books_.shows(1, 0, both_)) << "the later WRITE has not come, either";
  write(1);
  EXPECT_FALSE(books_.shows(1, 0, both_)) << "no WRITE covers bytes 0 to 4";
  write(0);
  write(1);
  memory_[kGuard + 4] = RegionBooks::kUntouched;
  EXPECT_FALSE(books_.shows(1, 0, both_));
}

TEST_F(RegionBooksTest, HoldTheLastBytesOfAllWrites) {
  EXPECT_EQ(books_.check(1, none_, true), "");
  write(0);
  EXPECT_NE(books_.check(1, none_, true), "");
  EXPECT_EQ(books_.check(1, first_, true), "");
  write(1);
  EXPECT_EQ(books_.check(1, both_, true), "");
  write(0);  // late, over newer data
  EXPECT_EQ(books_.check(1, both_, true),
            "byte 5 of the region of member 1 (20 bytes) is not the last WRITE's data");
  EXPECT_EQ(books_.check(1, both_, false), "") << "of an earlier time, which may be";
}

TEST_F(RegionBooksTest, FindBytesWrittenBesideTheRegion) {
  for (const std::size_t at : {std::size_t{0}, kGuard - 1, kGuard + 20, kGuard + 15}) {
    memory_[at] ^= 1;
    EXPECT_NE(books_.check(1, none_, true), "") << at;
    EXPECT_NE(books_.check(1, both_, false), "") << at;
    memory_[at] ^= 1;
  }
}

TEST_F(RegionBooksTest, ContainNothingOfARefusedWrite) {
  plan_.messages[0].outside = true;
  write(0);
  EXPECT_NE(books_.check(1, first_, false), "");
}

}  // namespace
}  // namespace cepheus::sim
