#include "wire/ipv4_header.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

using Bytes20 = std::array<std::uint8_t, Ipv4Header::kSize>;

// The textbooks' example: 192.168.0.1 to 192.168.0.199, UDP, checksum 0xB861.
constexpr Bytes20 kIpv4Example = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                  0xB8, 0x61, 0xC0, 0xA8, 0x00, 0x01, 0xC0, 0xA8, 0x00, 0xC7};

Bytes20 with_checksum(Bytes20 bytes) {
  const std::uint16_t sum = ipv4_checksum(bytes);
  bytes[10] = static_cast<std::uint8_t>(sum >> 8);
  bytes[11] = static_cast<std::uint8_t>(sum);
  return bytes;
}

Ipv4Header any_header() {
  Ipv4Header h;
  h.tos = *rc::gen::arbitrary<std::uint8_t>();
  h.total_length = *rc::gen::inRange<std::uint16_t>(Ipv4Header::kSize, 0xFFFF);
  h.identification = *rc::gen::arbitrary<std::uint16_t>();
  h.flags_fragment = *rc::gen::element<std::uint16_t>(0, 0x4000);
  h.ttl = *rc::gen::arbitrary<std::uint8_t>();
  h.protocol = *rc::gen::arbitrary<std::uint8_t>();
  h.source = Ipv4(*rc::gen::arbitrary<std::uint32_t>());
  h.destination = Ipv4(*rc::gen::arbitrary<std::uint32_t>());
  return h;
}

TEST(Ipv4Header, ReadsAndWritesTheKnownExample) {
  const auto h = Ipv4Header::parse(kIpv4Example);
  ASSERT_TRUE(h);
  EXPECT_EQ(h->total_length, 0x73);
  EXPECT_EQ(h->source, Ipv4(192, 168, 0, 1));
  EXPECT_EQ(h->destination, Ipv4(192, 168, 0, 199));
  EXPECT_EQ(header_bytes(*h), kIpv4Example);
}

TEST(Ipv4Header, RefusesEveryShortLength) { expect_refused_if_short<Ipv4Header>(kIpv4Example); }

TEST(Ipv4Header, RefusesEverySingleBitError) {
  for (std::size_t bit = 0; bit < 8 * kIpv4Example.size(); ++bit) {
    Bytes20 bytes = kIpv4Example;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    EXPECT_FALSE(Ipv4Header::parse(bytes)) << "bit " << bit;
  }
}

TEST(Ipv4Header, RefusesOptionsFragmentsOtherVersionsAndImpossibleLengths) {
  const auto refused = [](std::size_t at, std::uint8_t value) {
    return !Ipv4Header::parse(with_checksum(with(kIpv4Example, at, value)));
  };
  EXPECT_TRUE(refused(0, 0x46));  // options
  EXPECT_TRUE(refused(0, 0x44));  // shorter than a header
  EXPECT_TRUE(refused(0, 0x65));  // version 6
  EXPECT_TRUE(refused(6, 0x20));  // more fragments
  EXPECT_TRUE(refused(7, 0x01));  // an offset
  EXPECT_TRUE(refused(3, 19));    // total length below the header's own
  EXPECT_FALSE(refused(3, 20));
  EXPECT_FALSE(refused(6, 0x00));  // neither may be nor is fragmented
}

RC_GTEST_PROP(Ipv4Header, SurvivesEmitAndParse, ()) {
  const Ipv4Header h = any_header();
  RC_ASSERT(Ipv4Header::parse(header_bytes(h)) == h);
}

RC_GTEST_PROP(Ipv4Header, RewritesAddressesAndHopsAsIfEmittedAnew, ()) {
  Ipv4Header h = any_header();
  Bytes20 rewritten = header_bytes(h);
  // Ends of the range are where ones' complement has two zeros.
  const auto address =
      rc::gen::oneOf(rc::gen::element<std::uint32_t>(0, 0xFFFFFFFF, 0xFFFF, 0xFFFF0000),
                     rc::gen::arbitrary<std::uint32_t>());
  h.source = Ipv4(*address);
  h.destination = Ipv4(*address);
  const auto hops = *rc::gen::inRange<std::uint8_t>(0, h.ttl);
  h.ttl = static_cast<std::uint8_t>(h.ttl - hops);
  const Bytes20 before = rewritten;
  rewrite_ipv4(rewritten, before, h.source, h.destination, hops);
  RC_ASSERT(rewritten == header_bytes(h));
}

}  // namespace
}  // namespace cepheus::wire
