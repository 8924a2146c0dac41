#include "wire/pause.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

constexpr Mac kSource{{0x02, 0, 10, 0, 0, 1}};

// Written by hand after the standard: priority 3 pauses for 0xFFFF quanta, priority 5 resumes.
std::vector<std::uint8_t> by_the_book() {
  std::vector<std::uint8_t> bytes{0x01, 0x80, 0xC2, 0x00, 0x00, 0x01, 0x02, 0,    10, 0,
                                  0,    1,    0x88, 0x08, 0x01, 0x01, 0x00, 0x28, 0,  0,
                                  0,    0,    0,    0,    0xFF, 0xFF, 0,    0,    0,  0};
  bytes.resize(60);
  return bytes;
}

PauseFrame example() {
  PauseFrame pause;
  pause.quanta[3] = PauseFrame::kLongest;
  pause.quanta[5] = 0;
  return pause;
}

TEST(PauseFrame, IsEmittedAsInTheStandardOverAnyBytes) {
  Frame frame;
  frame.bytes.fill(0xA5);
  example().emit(frame, kSource);
  EXPECT_EQ(bytes_of(frame), by_the_book());
  EXPECT_TRUE(PauseFrame::is_one(frame));
}

TEST(PauseFrame, IsReadFromAnyFrameThatHoldsIt) {
  const auto bytes = by_the_book();
  const auto frame = Frame::from_bytes(bytes);
  ASSERT_TRUE(frame);
  EXPECT_EQ(PauseFrame::parse(*frame), example());
}

TEST(PauseFrame, RefusesShortAndOtherFrames) {
  for (std::size_t size = Ethernet::kSize; size < 60; ++size) {
    auto bytes = by_the_book();
    bytes.resize(size);
    const auto frame = Frame::from_bytes(bytes);
    ASSERT_TRUE(frame);
    EXPECT_FALSE(PauseFrame::parse(*frame)) << size << " bytes";
  }
  for (const std::size_t changed : {12u, 13u, 14u, 15u}) {  // EtherType and opcode
    auto bytes = by_the_book();
    bytes[changed] ^= 1;
    const auto frame = Frame::from_bytes(bytes);
    EXPECT_FALSE(frame && PauseFrame::parse(*frame)) << "byte " << changed;
  }
}

TEST(PauseFrame, CountsItsTimeInBitsOfTheLink) {
  using namespace std::chrono_literals;
  EXPECT_EQ(pause_time(1, BitRate{1'000'000'000}), 512ns);
  EXPECT_EQ(pause_time(0xFFFF, BitRate{100'000'000'000}), 335'539ns);  // 65535 * 5.12 ns
  EXPECT_EQ(pause_time(0, BitRate{1}), 0ns);
}

}  // namespace
}  // namespace cepheus::wire
