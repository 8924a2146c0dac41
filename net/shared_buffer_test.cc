#include "net/shared_buffer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>

#include "net/ingress_books.h"

namespace cepheus::net {
namespace {

constexpr wire::PortId kOne{0}, kTwo{1}, kLossy{2};
// Two lossless ports: 11,000 bytes are shared, and a port may hold half of the free part.
constexpr BufferConfig kSmall{.bytes = 20'000, .share = 0.5, .reserve = 500, .hysteresis = 1'000};
const std::vector<wire::Bytes> kHeadroom{4'000, 4'000, 0};

TEST(SharedBuffer, GivesAPortItsReserveAndItsShareOfTheFreePart) {
  SharedBuffer buffer(kSmall, kHeadroom);
  EXPECT_FALSE(buffer.is_lossless(kLossy));
  EXPECT_EQ(buffer.threshold(), 5'500u);
  buffer.take(kOne, 500);
  EXPECT_EQ(buffer.threshold(), 5'500u) << "the reserve is its own";
  buffer.take(kOne, 3'000);
  EXPECT_EQ(buffer.threshold(), 4'000u);  // (11,000 - 3,000) / 2
  EXPECT_FALSE(buffer.wants_pause(kOne));
  buffer.take(kOne, 600);
  EXPECT_EQ(buffer.threshold(), 3'700u);
  EXPECT_FALSE(buffer.wants_pause(kOne)) << "3,600 of 3,700";
  buffer.take(kOne, 100);
  EXPECT_TRUE(buffer.wants_pause(kOne)) << "3,700 of 3,650";
  EXPECT_FALSE(buffer.wants_pause(kTwo));
  buffer.check_consistent();
}

TEST(SharedBuffer, PutsFramesBeyondTheShareIntoTheHeadroomAndFreesThatFirst) {
  SharedBuffer buffer(kSmall, kHeadroom);
  buffer.take(kOne, 4'100);  // 3,600 shared; the threshold is 3,700
  buffer.take(kOne, 1'000);
  EXPECT_TRUE(buffer.wants_pause(kOne));
  EXPECT_EQ(buffer.used(kOne), 5'100u);
  EXPECT_TRUE(buffer.has_space(kOne, 3'000));
  EXPECT_FALSE(buffer.has_space(kOne, 3'001));
  buffer.release(kOne, 1'000);
  EXPECT_FALSE(buffer.wants_pause(kOne));
  EXPECT_EQ(buffer.threshold(), 3'700u) << "only headroom was freed";
  buffer.check_consistent();
}

TEST(SharedBuffer, GoesOnWellBelowTheThresholdOnly) {
  SharedBuffer buffer(kSmall, kHeadroom);
  buffer.take(kOne, 4'200);  // 3,700 shared, threshold 3,650
  ASSERT_TRUE(buffer.wants_pause(kOne));
  buffer.set_paused(kOne, true);
  buffer.release(kOne, 600);  // 3,100 of 3,950
  EXPECT_TRUE(buffer.wants_pause(kOne));
  buffer.release(kOne, 100);  // 3,000 of 4,000
  EXPECT_TRUE(buffer.wants_pause(kOne));
  buffer.release(kOne, 1);
  EXPECT_FALSE(buffer.wants_pause(kOne));
}

TEST(SharedBuffer, OnePortCanNotUseUpAnothersReserve) {
  SharedBuffer buffer(kSmall, kHeadroom);
  while (buffer.has_space(kOne, 100)) buffer.take(kOne, 100);
  EXPECT_TRUE(buffer.has_space(kTwo, 500 + 3'000));
  buffer.check_consistent();
}

// After any sequence of frames: no more than its memory, no refusal of a frame that fits, and
// nothing left.
RC_GTEST_PROP(SharedBuffer, CountsRight, (const std::vector<std::pair<bool, std::uint16_t>>& ops)) {
  SharedBuffer buffer(kSmall, kHeadroom);
  std::array<std::deque<wire::Bytes>, 2> held;
  for (const auto& [second, number] : ops) {
    const wire::PortId port = second ? kTwo : kOne;
    std::deque<wire::Bytes>& mine = held[second ? 1 : 0];
    const wire::Bytes bytes = 60 + number % 1500;
    if (number % 2 == 0 && buffer.has_space(port, bytes)) {
      buffer.take(port, bytes);
      mine.push_back(bytes);
    } else if (!mine.empty()) {
      buffer.release(port, mine.front());
      mine.pop_front();
    }
    buffer.check_consistent();
    RC_ASSERT(buffer.used() <= kSmall.bytes);
  }
  for (std::size_t p = 0; p < 2; ++p) {
    for (const wire::Bytes bytes : held[p]) {
      buffer.release(wire::PortId(static_cast<std::uint16_t>(p)), bytes);
    }
  }
  buffer.check_consistent();
  RC_ASSERT(buffer.used() == 0u);
  RC_ASSERT(buffer.threshold() == 5'500u);
}

TEST(IngressBooks, CountAFrameOnceUntilItsLastCopyHasLeft) {
  IngressBooks books(kSmall, kHeadroom);
  ASSERT_TRUE(books.admit(kOne, 1'000));
  const auto entry = books.open(kOne, 1'000);
  for (int copy = 0; copy < 3; ++copy) books.add_copy(entry);
  books.leave(entry);  // it has been handled
  EXPECT_EQ(books.buffer().used(), 1'000u);
  books.leave(entry);
  books.leave(entry);
  EXPECT_EQ(books.buffer().used(), 1'000u);
  books.leave(entry);
  EXPECT_EQ(books.buffer().used(), 0u);
  EXPECT_EQ(books.open_entries(), 0u);
  EXPECT_FALSE(books.take_change());
}

}  // namespace
}  // namespace cepheus::net
