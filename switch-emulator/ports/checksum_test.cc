#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "switch-emulator/ports/received_frames.h"
#include "wire/roce.h"
#include "wire/test_bytes.h"

namespace cepheus::fabric {
namespace {

std::vector<std::uint8_t> datagram(std::size_t payload_bytes) {
  wire::UdpDatagram d;
  d.ip.source = wire::Ipv4(10, 0, 0, 1);
  d.ip.destination = wire::Ipv4(198, 18, 0, 1);
  d.udp.source_port = d.udp.destination_port = wire::kDefaultMrpUdpPort;
  const std::vector<std::uint8_t> payload(payload_bytes, 0x5A);
  wire::Frame frame{};
  d.emit(frame, payload);
  return wire::bytes_of(frame);
}

constexpr std::size_t kUdpChecksumAt = wire::kUdpOffset + 6;

TEST(CompleteChecksum, ComputesUdps) {
  for (const std::size_t n : {0u, 1u, 20u, 1001u}) {
    const auto whole = datagram(n);
    auto missing = whole;
    missing[kUdpChecksumAt] = 0x12;  // the kernel stores the sum over the addresses there
    missing[kUdpChecksumAt + 1] = 0x34;
    complete_checksum(missing);
    EXPECT_EQ(missing, whole) << n << " bytes";
  }
}

// A SYN from 127.0.0.1:2 to 127.0.0.1:1 without options; the checksum by hand (RFC 9293 3.1).
TEST(CompleteChecksum, ComputesTcps) {
  auto bytes = datagram(12);
  wire::Ipv4Header ip;
  ip.total_length = 40;
  ip.protocol = 6;
  ip.source = ip.destination = wire::Ipv4(127, 0, 0, 1);
  ip.emit(std::span(bytes).subspan<wire::kIpOffset, wire::Ipv4Header::kSize>());
  const std::uint8_t segment[20] = {0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0x20, 0, 9, 9};
  std::copy(std::begin(segment), std::end(segment), bytes.begin() + wire::kUdpOffset);
  complete_checksum(bytes);
  // 0x7F00 + 1 + 0x7F00 + 1 + 6 + 20 + 2 + 1 + 0x5002 + 0x2000 = 0x16E21, folded 0x6E22.
  EXPECT_EQ(bytes[wire::kUdpOffset + 16] << 8 | bytes[wire::kUdpOffset + 17], 0xFFFF - 0x6E22);
}

TEST(CompleteChecksum, LeavesIncompletePacketsAlone) {
  const auto whole = datagram(64);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    const auto before = cut;
    complete_checksum(cut);
    EXPECT_EQ(cut, before) << n;
  }
}

}  // namespace
}  // namespace cepheus::fabric
