#include "wire/publication.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

constexpr Ipv4 kPublisher(10, 0, 0, 2);

Publication of_regions(std::size_t count) {
  Publication p;
  p.header.type = MrpType::kPublish;
  p.member = {kPublisher, Qpn(0x11), 0, 40000, 7};
  for (std::uint16_t i = 0; i < count; ++i) p.regions[i] = {i, 0x100u + i, 0x1000u * i, 64};
  p.count = count;
  return p;
}

RC_GTEST_PROP(Publication, SurvivesEmitAndParse, ()) {
  Publication p = of_regions(*rc::gen::inRange<std::size_t>(0, Publication::kMaxRegions + 1));
  p.header.seq = *rc::gen::arbitrary<std::uint16_t>();
  p.header.epoch = *rc::gen::arbitrary<std::uint16_t>();
  p.header.instance = *rc::gen::arbitrary<std::uint32_t>();
  p.header.mcst_id = McstId(*rc::gen::arbitrary<std::uint32_t>());
  for (std::size_t i = 0; i < p.count; ++i) {
    p.regions[i].virtual_address = *rc::gen::arbitrary<std::uint64_t>() >> 1;
    p.regions[i].length = *rc::gen::arbitrary<std::uint64_t>() >> 1;
    p.regions[i].rkey = *rc::gen::arbitrary<std::uint32_t>();
  }
  const auto bytes = bytes_of(p);
  const auto parsed = Publication::parse(bytes);
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->header == p.header && parsed->member == p.member);
  RC_ASSERT(std::ranges::equal(parsed->list(), p.list()));
  // A parser of members refuses it, because its records must be known.
  RC_ASSERT(p.count == 0 || !MrpMessage::parse(bytes));
}

TEST(Publication, HasTheLayoutOfItsDiagram) {
  Publication p = of_regions(0);
  p.header.seq = 3;
  p.regions[p.count++] = {0x0102, 0x03040506, 0x0708090A0B0C0D0E, 0x0F10};
  const std::vector<std::uint8_t> expected{
      3, 14, 0,    0,    0,  0,  0,    3,
      0, 1,  0,    64,                        // version, type, flags, epoch, seq, total
      0, 0,  0,    0,    0,  0,  0,    0,     // McstID, instance
      1, 4,  0x9C, 0x40, 10, 0,  0,    2,     // MEMBER, control port, IPv4
      0, 0,  0,    0x11, 0,  0,  0,    7,     // flags, QPN, token
      2, 7,  1,    2,    10, 0,  0,    2,     // REGION, number, IPv4
      7, 8,  9,    10,   11, 12, 13,   14,    // virtual address
      0, 0,  0,    0,    0,  0,  0x0F, 0x10,  // length
      3, 4,  5,    6};                        // rkey
  EXPECT_EQ(bytes_of(p), expected);
}

TEST(Publication, RefusesOtherMessages) {
  const auto good = bytes_of(of_regions(2));
  ASSERT_TRUE(Publication::parse(good));
  constexpr std::size_t kFirst = MrpHeader::kSize + MrpMember::kSize;
  EXPECT_FALSE(Publication::parse(with(good, 1, 1)));           // REGISTER
  EXPECT_FALSE(Publication::parse(with(good, 11, 65)));         // not its length
  EXPECT_FALSE(Publication::parse(with(good, 20, 2)));          // begins with a region
  EXPECT_FALSE(Publication::parse(with(good, kFirst, 1)));      // a member where a region should be
  EXPECT_FALSE(Publication::parse(with(good, kFirst + 1, 6)));  // of another length
  EXPECT_FALSE(Publication::parse(with(good, kFirst + 3, 1)));  // one number twice
  EXPECT_FALSE(Publication::parse(with(good, kFirst + 7, 9)));  // another host's
  expect_refused_if_short<Publication>(good);
  std::array<std::uint8_t, 35> small;
  EXPECT_EQ(of_regions(0).emit(small), 0u);
}

TEST(Publication, IsRefusedIfARegionPassesTheEndOfTheAddressSpace) {
  Publication p = of_regions(1);
  p.regions[0].virtual_address = ~std::uint64_t{0} - 63;
  EXPECT_FALSE(Publication::parse(bytes_of(p)));
  p.regions[0].length = 63;
  EXPECT_TRUE(Publication::parse(bytes_of(p)));
}

TEST(Publication, FillsADatagramExceptForItsSignature) {
  const auto bytes = bytes_of(of_regions(Publication::kMaxRegions));
  EXPECT_LE(bytes.size() + MrpMessage::kSignatureSize, MrpMessage::kMaxDatagram);
  EXPECT_TRUE(Publication::parse(bytes));
}

}  // namespace
}  // namespace cepheus::wire
