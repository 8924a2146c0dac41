#include "wire/arp.h"

#include <gtest/gtest.h>

#include <array>

namespace cepheus::wire {
namespace {

using Bytes28 = std::array<std::uint8_t, Arp::kSize>;

// Request of Linux 6.1 from 10.0.0.1 for 198.18.0.1.
constexpr Bytes28 kRequest = {0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x01, 0x02, 0x00,
                              0x00, 0x00, 0x00, 0x01, 0x0A, 0x00, 0x00, 0x01, 0x00, 0x00,
                              0x00, 0x00, 0x00, 0x00, 0xC6, 0x12, 0x00, 0x01};

TEST(Arp, ReadsAndWritesAKernelsRequest) {
  const auto arp = Arp::parse(kRequest);
  ASSERT_TRUE(arp);
  EXPECT_EQ(arp->operation, Arp::Operation::kRequest);
  EXPECT_EQ(arp->sender_mac.to_string(), "02:00:00:00:00:01");
  EXPECT_EQ(arp->sender, Ipv4(10, 0, 0, 1));
  EXPECT_EQ(arp->target, Ipv4(198, 18, 0, 1));
  Bytes28 out;
  out.fill(0xA5);
  arp->emit(out);
  EXPECT_EQ(out, kRequest);
}

TEST(Arp, RefusesEveryShortLength) {
  for (std::size_t n = 0; n < Arp::kSize; ++n) {
    EXPECT_FALSE(Arp::parse(std::span(kRequest).first(n))) << n;
  }
}

TEST(Arp, RefusesOtherHardwareProtocolsLengthsAndOperations) {
  for (std::size_t at = 0; at < 8; ++at) {
    Bytes28 bytes = kRequest;
    bytes[at] ^= 0x10;
    EXPECT_FALSE(Arp::parse(bytes)) << "byte " << at;
  }
  Bytes28 bytes = kRequest;
  bytes[7] = 0;
  EXPECT_FALSE(Arp::parse(bytes));
  bytes[7] = 3;
  EXPECT_FALSE(Arp::parse(bytes));
}

}  // namespace
}  // namespace cepheus::wire
