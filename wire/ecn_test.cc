#include "wire/ecn.h"

#include <gtest/gtest.h>

#include <array>

#include "wire/icrc.h"
#include "wire/roce.h"

namespace cepheus::wire {
namespace {

std::array<std::uint8_t, Ipv4Header::kSize> header_with(std::uint8_t tos) {
  Ipv4Header header;
  header.tos = tos;
  header.total_length = 1084;
  header.source = Ipv4(10, 0, 0, 1);
  header.destination = Ipv4(198, 18, 0, 1);
  std::array<std::uint8_t, Ipv4Header::kSize> bytes;
  header.emit(bytes);
  return bytes;
}

TEST(Ecn, MarksCapablePacketsAndKeepsTheRestOfTheHeader) {
  for (int tos = 0; tos < 256; ++tos) {
    auto bytes = header_with(static_cast<std::uint8_t>(tos));
    const bool capable = (tos & 3) != 0;
    EXPECT_EQ(mark_congestion(bytes), capable) << "tos " << tos;
    auto expected = header_with(static_cast<std::uint8_t>(capable ? tos | 3 : tos));
    EXPECT_EQ(bytes, expected) << "tos " << tos << ": the checksum, too";
  }
}

TEST(Ecn, AMarkLeavesTheIcrcRight) {
  RoceHeaders headers;
  headers.bth.opcode = Opcode::kRcSendOnly;
  headers.ip.tos = static_cast<std::uint8_t>(Ecn::kEct0);
  headers.ip.source = Ipv4(10, 0, 0, 1);
  headers.ip.destination = Ipv4(10, 0, 0, 2);
  Frame frame;
  headers.emit(frame, 8);
  const std::array<std::uint8_t, 8> payload{1, 2, 3, 4, 5, 6, 7, 8};
  frame.set_inline_payload(payload);
  frame.icrc_state = Icrc::kDeferred;
  seal_icrc(frame);
  ASSERT_TRUE(mark_congestion(frame.header().subspan<kIpOffset, Ipv4Header::kSize>()));
  EXPECT_TRUE(check_icrc(frame));
  const auto marked = RoceHeaders::parse(frame);
  ASSERT_TRUE(marked);
  EXPECT_EQ(ecn_of(marked->ip.tos), Ecn::kExperienced);
}

}  // namespace
}  // namespace cepheus::wire
