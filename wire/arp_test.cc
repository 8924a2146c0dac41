#include "wire/arp.h"

#include <gtest/gtest.h>

#include <array>

#include "wire/test_bytes.h"

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
  EXPECT_EQ(header_bytes(*arp), kRequest);
}

TEST(Arp, RefusesEveryShortLength) { expect_refused_if_short<Arp>(kRequest); }

TEST(Arp, RefusesOtherHardwareProtocolsLengthsAndOperations) {
  for (std::size_t at = 0; at < 8; ++at) {
    Bytes28 bytes = kRequest;
    bytes[at] ^= 0x10;
    EXPECT_FALSE(Arp::parse(bytes)) << "byte " << at;
  }
  EXPECT_FALSE(Arp::parse(with(kRequest, 7, 0)));
  EXPECT_FALSE(Arp::parse(with(kRequest, 7, 3)));
}

}  // namespace
}  // namespace cepheus::wire
