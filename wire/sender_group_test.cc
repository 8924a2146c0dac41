#include "wire/sender_group.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

SenderGroupMessage install(std::size_t receivers, std::size_t regions = 0) {
  SenderGroupMessage m;
  m.header.type = MrpType::kInstall;
  m.header.mcst_id = Ipv4(10, 0, 0, 1);
  m.addressed = Ipv4(10, 0, 0, 2);
  m.virtual_qpn = Qpn(kFirstSenderGroupQpn);
  m.share = SenderGroupMessage::kWholeShare;
  for (std::size_t i = 0; i < receivers; ++i) {
    m.add({Ipv4(10, 0, 0, static_cast<std::uint8_t>(2 + i)), Qpn(0x11), 0, 40000, 7});
  }
  for (std::uint16_t i = 0; i < regions; ++i) m.add_region(i % receivers, {i, 1u + i, 4096, 64});
  return m;
}

RC_GTEST_PROP(SenderGroupMessage, SurvivesEmitAndParse, ()) {
  constexpr std::size_t kMost = SenderGroupMessage::kMaxReceivers;
  SenderGroupMessage m =
      install(*rc::gen::inRange<std::size_t>(1, kMost + 1),
              *rc::gen::inRange<std::size_t>(0, SenderGroupMessage::kMaxRegions + 1));
  m.header.seq = *rc::gen::arbitrary<std::uint16_t>();
  m.header.flags = *rc::gen::arbitrary<std::uint16_t>();
  m.control_port = *rc::gen::arbitrary<std::uint16_t>();
  m.virtual_qpn = Qpn(*rc::gen::inRange(kFirstSenderGroupQpn, kLastSenderGroupQpn + 1));
  m.sender_qpn = Qpn(*rc::gen::arbitrary<std::uint32_t>());
  m.start = Psn(*rc::gen::arbitrary<std::uint32_t>());
  m.window = *rc::gen::arbitrary<std::uint32_t>();
  m.path_mtu = static_cast<std::uint16_t>(*rc::gen::arbitrary<std::uint8_t>() *
                                          SenderGroupMessage::kMtuUnit);
  m.share = *rc::gen::arbitrary<std::uint64_t>();
  const auto bytes = bytes_of(m);
  const auto parsed = SenderGroupMessage::parse(bytes);
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->header == m.header && parsed->control_port == m.control_port);
  RC_ASSERT(parsed->addressed == m.addressed && parsed->virtual_qpn == m.virtual_qpn);
  RC_ASSERT(parsed->sender_qpn == m.sender_qpn && parsed->start == m.start);
  RC_ASSERT(parsed->share == m.share && parsed->window == m.window &&
            parsed->path_mtu == m.path_mtu);
  RC_ASSERT(std::ranges::equal(parsed->list(), m.list()));
  RC_ASSERT(std::ranges::equal(parsed->region_list(), m.region_list()));
  // A parser of members refuses it, because the SENDER record must be known.
  RC_ASSERT(!MrpMessage::parse(bytes));
}

TEST(SenderGroupMessage, IsNotWrittenIntoTooSmallABuffer) {
  const SenderGroupMessage m = install(2, 1);
  std::vector<std::uint8_t> buffer(bytes_of(m).size());
  EXPECT_EQ(m.emit(buffer), buffer.size());
  buffer.pop_back();
  EXPECT_EQ(m.emit(buffer), 0u);
}

TEST(SenderGroupMessage, HasTheLayoutOfItsDiagram) {
  SenderGroupMessage m = install(1);
  m.header.flags = SenderGroupMessage::kFresh;
  m.header.seq = 3;
  m.control_port = 0x9C41;
  m.virtual_qpn = Qpn(0xC00102);
  m.sender_qpn = Qpn(0x21);
  m.start = Psn(0x030405);
  m.window = 0x0A0B0C0D;
  m.share = 0x0102030405060708;
  const std::vector<std::uint8_t> expected{
      3,  15,   0,    1,    0,  0, 0, 3,    0, 1, 0, 68,  // version, type, flags, epoch, seq
      10, 0,    0,    1,    0,  0, 0, 0,                  // sender, instance
      4,  8,    0x9C, 0x41, 10, 0, 0, 2,                  // SENDER, control port, addressed to
      0,  0xC0, 1,    2,    0,  0, 0, 0x21, 0, 3, 4, 5,   // virtual QPN, QPN, PSN
      10, 11,   12,   13,   1,  2, 3, 4,    5, 6, 7, 8,   // window, share
      1,  4,    0x9C, 0x40, 10, 0, 0, 2,                  // MEMBER
      0,  0,    0,    0x11, 0,  0, 0, 7};
  EXPECT_EQ(bytes_of(m), expected);
}

TEST(SenderGroupMessage, RemovesAReceiverWithItsRegions) {
  SenderGroupMessage m = install(3, 6);  // regions i and i + 3 are receiver i's
  m.remove(1);
  EXPECT_TRUE(
      std::ranges::equal(m.list(), std::vector{install(3).receivers[0], install(3).receivers[2]}));
  const std::vector<SenderGroupMessage::Region> left{
      {0, {0, 1, 4096, 64}}, {1, {2, 3, 4096, 64}}, {0, {3, 4, 4096, 64}}, {1, {5, 6, 4096, 64}}};
  EXPECT_TRUE(std::ranges::equal(m.region_list(), left));
  m.remove(1);
  m.remove(0);
  EXPECT_EQ(m.receiver_count, 0u);
  EXPECT_EQ(m.region_count, 0u);
}

TEST(SenderGroupMessage, TheLargestFitsIntoADatagram) {
  const auto bytes =
      bytes_of(install(SenderGroupMessage::kMaxReceivers, SenderGroupMessage::kMaxRegions));
  EXPECT_LE(bytes.size(), MrpMessage::kMaxSize);
  EXPECT_TRUE(SenderGroupMessage::parse(bytes));
}

TEST(SenderGroupMessage, RefusesOtherMessages) {
  const auto good = bytes_of(install(2, 2));
  ASSERT_TRUE(SenderGroupMessage::parse(good));
  constexpr std::size_t kSender = MrpHeader::kSize;
  constexpr std::size_t kMembers = kSender + SenderGroupMessage::kSenderRecord;
  constexpr std::size_t kRegions = kMembers + 2 * MrpMember::kSize;
  EXPECT_FALSE(SenderGroupMessage::parse(with(good, 1, 1)));        // REGISTER
  EXPECT_FALSE(SenderGroupMessage::parse(with(good, 11, 65)));      // not its length
  EXPECT_FALSE(SenderGroupMessage::parse(with(good, kSender, 1)));  // no sender
  EXPECT_FALSE(
      SenderGroupMessage::parse(with(good, kSender + 9, 0)));  // a real queue pair's number
  for (const std::size_t reserved : {8, 12}) {
    EXPECT_FALSE(SenderGroupMessage::parse(with(good, kSender + reserved, 1))) << reserved;
  }
  EXPECT_FALSE(SenderGroupMessage::parse(with(good, kMembers + 7, 3)));  // a receiver twice
  EXPECT_FALSE(SenderGroupMessage::parse(with(good, kMembers, 5)));      // an unknown record
  EXPECT_FALSE(
      SenderGroupMessage::parse(with(good, kRegions + 7, 9)));  // a region without a receiver
  auto past_the_end = with(good, kRegions + 8, 0xFF);           // address and length
  past_the_end[kRegions + 16] = 0xFF;
  EXPECT_FALSE(SenderGroupMessage::parse(past_the_end));
  expect_refused_if_short<SenderGroupMessage>(good);
}

}  // namespace
}  // namespace cepheus::wire
