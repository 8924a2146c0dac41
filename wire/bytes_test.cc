#include "wire/bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace cepheus::wire {
namespace {

TEST(Bytes, AreReadAsTheyWereWritten) {
  std::vector<std::uint8_t> message;
  ByteWriter out(message);
  out.u8(1);
  out.u16(0x0203);
  out.u32(0x04050607);
  out.u64(0x08090A0B0C0D0E0F);
  out.bytes(std::array<std::uint8_t, 2>{16, 17});
  out.text("ab");
  EXPECT_EQ(message, (std::vector<std::uint8_t>{1,  2,  3,  4,  5,  6,  7, 8, 9,   10, 11,
                                                12, 13, 14, 15, 16, 17, 0, 2, 'a', 'b'}));
  ByteReader in(message);
  EXPECT_EQ(in.u8(), 1);
  EXPECT_EQ(in.u16(), 0x0203);
  EXPECT_EQ(in.u32(), 0x04050607u);
  EXPECT_EQ(in.u64(), 0x08090A0B0C0D0E0Fu);
  std::array<std::uint8_t, 2> two{};
  in.bytes(two);
  EXPECT_EQ(two, (std::array<std::uint8_t, 2>{16, 17}));
  EXPECT_EQ(in.left(), 4u);
  EXPECT_FALSE(in.is_done());
  EXPECT_EQ(in.text(), "ab");
  EXPECT_TRUE(in.is_done());
}

TEST(Bytes, ATextHasAtMost65535Bytes) {
  std::vector<std::uint8_t> message;
  ByteWriter(message).text(std::string(0x10000, 'x'));
  EXPECT_EQ(message.size(), 2u + 0xFFFF);
  ByteReader in(message);
  EXPECT_EQ(in.text().size(), 0xFFFFu);
  EXPECT_TRUE(in.is_done());
}

TEST(Bytes, OfATruncatedMessageAreZeroFromItsEnd) {
  const std::array<std::uint8_t, 3> message{1, 2, 3};
  ByteReader in(message);
  EXPECT_EQ(in.u32(), 0u);
  EXPECT_FALSE(in.is_whole());
  EXPECT_EQ(in.u8(), 0) << "although there is one";
  EXPECT_FALSE(in.is_done());

  ByteReader other(message);
  std::array<std::uint8_t, 4> four{9, 9, 9, 9};
  other.bytes(four);
  EXPECT_EQ(four, (std::array<std::uint8_t, 4>{9, 9, 9, 9}));
  EXPECT_FALSE(other.is_whole());

  const std::array<std::uint8_t, 3> text{0, 2, 'a'};
  ByteReader truncated(text);
  EXPECT_EQ(truncated.text(), "");
  EXPECT_FALSE(truncated.is_whole());
}

}  // namespace
}  // namespace cepheus::wire
