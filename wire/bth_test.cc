#include "wire/bth.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <utility>
#include <vector>

#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

using Bytes12 = std::array<std::uint8_t, Bth::kSize>;

constexpr Bytes12 kBthExample = {0x0A, 0xE0, 0x7F, 0xFF, 0x81, 0x12,
                                 0x34, 0x56, 0x82, 0xAB, 0xCD, 0xEF};

TEST(Bth, ReadsEveryFieldFromItsPlace) {
  const auto b = Bth::parse(kBthExample);
  ASSERT_TRUE(b);
  EXPECT_EQ(b->opcode, Opcode::kRcWriteOnly);
  EXPECT_TRUE(b->solicited);
  EXPECT_TRUE(b->migration);
  EXPECT_EQ(b->pad_count, 2);
  EXPECT_EQ(b->transport_version, 0);
  EXPECT_EQ(b->pkey, 0x7FFF);
  EXPECT_TRUE(b->fecn);
  EXPECT_FALSE(b->becn);
  EXPECT_EQ(b->reserved6, 1);
  EXPECT_EQ(b->destination_qp, Qpn(0x123456));
  EXPECT_TRUE(b->ack_request);
  EXPECT_EQ(b->reserved7, 2);
  EXPECT_EQ(b->psn, Psn(0xABCDEF));
}

TEST(Bth, RefusesEveryShortLength) { expect_refused_if_short<Bth>(kBthExample); }

// Every bit belongs to a field, so any twelve bytes must come back.
RC_GTEST_PROP(Bth, RestoresAnyTwelveBytes, ()) {
  const auto bytes = *rc::gen::container<Bytes12>(rc::gen::arbitrary<std::uint8_t>());
  const auto b = Bth::parse(bytes);
  RC_ASSERT(b.has_value());
  RC_ASSERT(header_bytes(*b) == bytes);
}

// IBTA vol. 1, table 38 (opcodes) and the formats after it: extension bytes per opcode.
TEST(OpcodeInfo, CountsTheExtensionHeaders) {
  const std::vector<std::pair<int, int>> expected = {
      {0x00, 0}, {0x01, 0},  {0x02, 0},  {0x03, 4},  {0x04, 0},  {0x05, 4},  {0x06, 16}, {0x07, 0},
      {0x08, 0}, {0x09, 4},  {0x0A, 16}, {0x0B, 20}, {0x0C, 16}, {0x0D, 4},  {0x0E, 0},  {0x0F, 4},
      {0x10, 4}, {0x11, 4},  {0x12, 12}, {0x13, 28}, {0x14, 28}, {0x16, 4},  {0x17, 4},  {0x20, 0},
      {0x21, 0}, {0x22, 0},  {0x23, 4},  {0x24, 0},  {0x25, 4},  {0x26, 16}, {0x27, 0},  {0x28, 0},
      {0x29, 4}, {0x2A, 16}, {0x2B, 20}, {0x64, 8},  {0x65, 12}, {0x81, 16}};
  std::size_t known = 0;
  for (int i = 0; i < 256; ++i) known += opcode_info(static_cast<Opcode>(i)).known ? 1 : 0;
  EXPECT_EQ(known, expected.size());
  for (const auto& [opcode, bytes] : expected) {
    const OpcodeInfo& info = opcode_info(static_cast<Opcode>(opcode));
    EXPECT_TRUE(info.known) << opcode;
    EXPECT_EQ(info.extension_bytes, bytes) << opcode;
  }
}

TEST(OpcodeInfo, NamesTheKindAndPlaceOfEveryPacket) {
  const auto is = [](Opcode o) { return opcode_info(o); };
  EXPECT_TRUE(is(Opcode::kRcSendFirst).first && !is(Opcode::kRcSendFirst).last);
  EXPECT_TRUE(!is(Opcode::kRcSendMiddle).first && !is(Opcode::kRcSendMiddle).last);
  EXPECT_TRUE(!is(Opcode::kRcWriteLastImm).first && is(Opcode::kRcWriteLastImm).last);
  EXPECT_TRUE(is(Opcode::kRcWriteOnly).first && is(Opcode::kRcWriteOnly).last);
  EXPECT_TRUE(is(Opcode::kRcWriteOnlyImm).reth && is(Opcode::kRcWriteOnlyImm).imm);
  EXPECT_TRUE(is(Opcode::kRcSendLastInvalidate).ieth);
  EXPECT_TRUE(is(Opcode::kUdSendOnlyImm).deth && is(Opcode::kUdSendOnlyImm).imm);
}

TEST(OpcodeInfo, GivesUcTheSendsAndWritesOfRc) {
  EXPECT_EQ(as_uc(Opcode::kRcSendLastImm), Opcode::kUcSendLastImm);
  EXPECT_EQ(as_uc(Opcode::kRcWriteOnlyImm), Opcode::kUcWriteOnlyImm);
  for (int i = 0; i <= 0x0B; ++i) {
    const OpcodeInfo& rc = opcode_info(static_cast<Opcode>(i));
    const OpcodeInfo& uc = opcode_info(as_uc(static_cast<Opcode>(i)));
    EXPECT_TRUE(rc.send == uc.send && rc.write == uc.write && rc.first == uc.first &&
                rc.last == uc.last && rc.imm == uc.imm && rc.reth == uc.reth)
        << i;
  }
  EXPECT_EQ(service_of(Opcode::kRcSendOnlyInvalidate), Service::kRc);
  EXPECT_EQ(service_of(Opcode::kUcWriteOnlyImm), Service::kUc);
  EXPECT_EQ(service_of(Opcode::kUdSendOnlyImm), Service::kUd);
  EXPECT_EQ(service_of(Opcode::kCnp), Service::kCongestion);
}

TEST(OpcodeInfo, MulticastsSendsAndWritesOfRcOnly) {
  for (int i = 0; i < 256; ++i) {
    const OpcodeInfo& info = opcode_info(static_cast<Opcode>(i));
    const bool expected = i <= 0x0B || i == 0x16 || i == 0x17;
    EXPECT_EQ(info.multicastable(), expected) << i;
    EXPECT_FALSE(info.request() && info.response) << i;
    EXPECT_TRUE(info.known || !(info.request() || info.response)) << i;
  }
}

}  // namespace
}  // namespace cepheus::wire
