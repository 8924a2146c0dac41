#include "wire/mrp.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "wire/byte_order.h"
#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

MrpMessage any_message(std::size_t members) {
  MrpMessage m;
  m.header.type = static_cast<MrpType>(*rc::gen::inRange(1, 15));
  m.header.flags = *rc::gen::arbitrary<std::uint16_t>();
  m.header.epoch = *rc::gen::arbitrary<std::uint16_t>();
  m.header.seq = *rc::gen::arbitrary<std::uint16_t>();
  m.header.total = *rc::gen::arbitrary<std::uint16_t>();
  m.header.mcst_id = McstId(*rc::gen::arbitrary<std::uint32_t>());
  m.header.instance = *rc::gen::arbitrary<std::uint32_t>();
  for (std::size_t i = 0; i < members; ++i) {
    m.add({Ipv4(*rc::gen::arbitrary<std::uint32_t>()), Qpn(*rc::gen::arbitrary<std::uint32_t>()),
           *rc::gen::arbitrary<std::uint8_t>(), *rc::gen::arbitrary<std::uint16_t>(),
           *rc::gen::arbitrary<std::uint32_t>()});
  }
  return m;
}

// A message of one member and one more record, whose length is right in the header.
std::vector<std::uint8_t> with_record(const std::vector<std::uint8_t>& record) {
  MrpMessage m;
  m.add({Ipv4(10, 0, 0, 1), Qpn(1)});
  auto bytes = bytes_of(m);
  bytes.insert(bytes.begin() + MrpHeader::kSize, record.begin(), record.end());
  bytes[11] = static_cast<std::uint8_t>(bytes.size());
  return bytes;
}

bool same(const MrpMessage& a, const MrpMessage& b) {
  return a.header == b.header &&
         std::equal(a.list().begin(), a.list().end(), b.list().begin(), b.list().end());
}

RC_GTEST_PROP(MrpMessage, SurvivesEmitAndParse, ()) {
  const MrpMessage m = any_message(*rc::gen::inRange<std::size_t>(0, MrpMessage::kMaxMembers + 1));
  const auto bytes = bytes_of(m);
  RC_ASSERT(bytes.size() == MrpHeader::kSize + m.member_count * MrpMember::kSize);
  const auto parsed = MrpMessage::parse(bytes);
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(same(*parsed, m));
}

TEST(MrpMessage, HasTheLayoutOfItsDiagram) {
  MrpMessage m;
  m.header = {MrpType::kReject, 0x0203, 0x0405, 0x0607, 0x0809, McstId(198, 18, 0, 1), 0x0A0B0C0D};
  ASSERT_TRUE(m.add({Ipv4(10, 0, 0, 2), Qpn(0x112233), 0x44, 0x5566, 0x778899AA}));
  const std::vector<std::uint8_t> expected = {
      3,    3,    2,    3,    4,  5,  6,  7,   // version, type, flags, epoch, seq
      8,    9,    0,    36,                    // total, length
      198,  18,   0,    1,    10, 11, 12, 13,  // McstID, instance
      1,    4,    0x55, 0x66,                  // MEMBER, words, control port
      10,   0,    0,    2,                     // IPv4
      0x44, 0x11, 0x22, 0x33,                  // flags, QPN
      0x77, 0x88, 0x99, 0xAA};                 // token
  EXPECT_EQ(bytes_of(m), expected);
}

TEST(MrpPath, HasTheLayoutOfItsDiagramBehindTheMembers) {
  MrpMessage m;
  ASSERT_TRUE(m.add({Ipv4(10, 0, 0, 2), Qpn(1)}));
  m.path = MrpPath{0x0102, 0x03040506};
  const auto bytes = bytes_of(m);
  const std::vector<std::uint8_t> expected = {0x85, 2, 1, 2, 3, 4, 5, 6};
  ASSERT_EQ(bytes.size(), MrpHeader::kSize + MrpMember::kSize + MrpPath::kSize);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), bytes.end() - MrpPath::kSize));
  const auto parsed = MrpMessage::parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->path, m.path);
  EXPECT_EQ(parsed->skipped_size, 0u);
}

TEST(MrpPath, IsThereOnceAndWhole) {
  const std::vector<std::uint8_t> once = {0x85, 2, 16, 0, 0, 0, 0, 68};
  const auto message = MrpMessage::parse(with_record(once));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->path, (MrpPath{4096, 68}));
  auto twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_FALSE(MrpMessage::parse(with_record(twice)));
  EXPECT_FALSE(MrpMessage::parse(with_record({0x85, 1, 16, 0})));
  EXPECT_FALSE(MrpMessage::parse(with_record({0x85, 3, 16, 0, 0, 0, 0, 68, 0, 0, 0, 0})));
}

TEST(MrpPath, FitsBesideAFullListAndGivesWayToUnknownRecords) {
  MrpMessage m;
  for (std::size_t i = 0; i < MrpMessage::kMaxMembers; ++i) {
    ASSERT_TRUE(m.add({Ipv4(static_cast<std::uint32_t>(i)), Qpn(1)}));
  }
  m.path = MrpPath{4096, 68};
  EXPECT_EQ(MrpMessage::parse(bytes_of(m))->path, m.path);
  m.skipped_size = 8;
  std::ranges::copy(std::array<std::uint8_t, 8>{0x92, 2}, m.skipped.begin());
  const auto parsed = MrpMessage::parse(bytes_of(m));
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->path);
  EXPECT_EQ(parsed->skipped_size, 8u);
}

TEST(MrpPath, TakesTheSmallerOfKnownLimits) {
  MrpMessage m;
  m.narrow({4096, 0});
  m.narrow({1024, 68});
  m.narrow({0, 1000});
  EXPECT_EQ(m.path, (MrpPath{1024, 68}));
}

TEST(MrpReduction, HasTheLayoutOfItsDiagramBeforePath) {
  MrpMessage m;
  ASSERT_TRUE(m.add({Ipv4(10, 0, 0, 2), Qpn(1)}));
  m.path = MrpPath{0x0102, 0x03040506};
  m.reduction = MrpReduction{7, 0x1000, 0x0100};
  const auto bytes = bytes_of(m);
  const std::vector<std::uint8_t> expected = {8, 2, 7, 0, 0x10, 0, 1, 0, 0x85, 2, 1, 2, 3, 4, 5, 6};
  ASSERT_EQ(bytes.size(), MrpHeader::kSize + MrpMember::kSize + expected.size());
  EXPECT_TRUE(std::equal(expected.rbegin(), expected.rend(), bytes.rbegin()));
  const auto parsed = MrpMessage::parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->reduction, m.reduction);
  EXPECT_EQ(parsed->path, m.path);
}

TEST(MrpReduction, IsThereOnceWholeAndInRegisterAlone) {
  const std::vector<std::uint8_t> once = {8, 2, 2, 0, 0x10, 0, 0, 64};
  const auto message = MrpMessage::parse(with_record(once));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->reduction, (MrpReduction{MrpReduction::kValues, 4096, 64}));
  EXPECT_TRUE(message->reduction->is_valid());
  auto twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_FALSE(MrpMessage::parse(with_record(twice)));
  EXPECT_FALSE(MrpMessage::parse(with_record({8, 1, 1, 0})));
  EXPECT_FALSE(MrpMessage::parse(with_record({8, 3, 1, 0, 0x10, 0, 0, 64, 0, 0, 0, 0})));
  EXPECT_FALSE(MrpMessage::parse(with_record({8, 2, 1, 2, 0x10, 0, 0, 64}))) << "unknown flag";
  const auto ascending = MrpMessage::parse(with_record({8, 2, 2, 1, 0x10, 0, 0, 64}));
  ASSERT_TRUE(ascending);
  EXPECT_TRUE(ascending->reduction->ascends);
  EXPECT_EQ(MrpMessage::parse(bytes_of(*ascending))->reduction, ascending->reduction);
  auto confirm = with_record(once);
  confirm[1] = static_cast<std::uint8_t>(MrpType::kConfirm);
  EXPECT_FALSE(MrpMessage::parse(confirm));
  EXPECT_FALSE(refuse_version(with_record(once))) << "it is known";
}

TEST(MrpReduction, HasAWindowThatIsAPowerOfTwoAndAUnitOfWholeValues) {
  for (const std::uint16_t window : {1, 2, 64, 256}) {
    EXPECT_TRUE((MrpReduction{MrpReduction::kValues, 1024, window}.is_valid())) << window;
  }
  for (const std::uint16_t window : {0, 3, 63, 512}) {
    EXPECT_FALSE((MrpReduction{MrpReduction::kValues, 1024, window}.is_valid())) << window;
  }
  for (const std::uint16_t unit : {8, 24, 4096}) {
    EXPECT_TRUE((MrpReduction{MrpReduction::kValues, unit, 64}.is_valid())) << unit;
  }
  for (const std::uint16_t unit : {0, 1, 7, 12, 4095, 4097, 4104}) {
    EXPECT_FALSE((MrpReduction{MrpReduction::kValues, unit, 64}.is_valid())) << unit;
  }
}

TEST(MrpReduction, FitsBesideAListOfItsOwnLengthAndPath) {
  MrpMessage m;
  for (std::size_t i = 0; i < MrpMessage::kMaxWithReduction; ++i) {
    ASSERT_TRUE(m.add({Ipv4(static_cast<std::uint32_t>(i)), Qpn(1)}));
  }
  m.path = MrpPath{4096, 68};
  m.reduction = MrpReduction{MrpReduction::kValues, 4096, 64};
  const auto parsed = MrpMessage::parse(bytes_of(m));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->path, m.path);
  EXPECT_EQ(parsed->reduction, m.reduction);
}

TEST(MrpHeader, AloneHasItsOwnLength) {
  const auto bytes = header_bytes(MrpHeader{});
  EXPECT_EQ(load_be16(bytes.data() + 10), MrpHeader::kSize);
}

TEST(MrpMessage, FillsADatagramExceptForASignature) {
  MrpMessage m;
  for (std::size_t i = 0; i < MrpMessage::kMaxMembers; ++i) {
    ASSERT_TRUE(m.add({Ipv4(static_cast<std::uint32_t>(i)), Qpn(1)}));
  }
  EXPECT_FALSE(m.add({Ipv4(1), Qpn(1)}));
  const auto bytes = bytes_of(m);
  const std::size_t most = MrpMessage::kMaxDatagram - MrpMessage::kSignatureSize;
  EXPECT_LE(bytes.size(), most);
  EXPECT_GT(bytes.size() + MrpMember::kSize, most);
  auto longer = bytes;
  longer.resize(bytes.size() + MrpMember::kSize);
  std::copy_n(bytes.end() - MrpMember::kSize, MrpMember::kSize, longer.end() - MrpMember::kSize);
  longer[10] = static_cast<std::uint8_t>(longer.size() >> 8);
  longer[11] = static_cast<std::uint8_t>(longer.size());
  EXPECT_FALSE(MrpMessage::parse(longer));
}

TEST(MrpMessage, RefusesEveryOtherLengthThanItsOwn) {
  MrpMessage m;
  m.add({Ipv4(10, 0, 0, 1), Qpn(1)});
  m.add({Ipv4(10, 0, 0, 2), Qpn(2)});
  auto bytes = bytes_of(m);
  bytes.push_back(0);
  for (std::size_t n = 0; n <= bytes.size(); ++n) {
    const bool whole = n + 1 == bytes.size();
    EXPECT_EQ(MrpMessage::parse(std::span(bytes).first(n)).has_value(), whole) << n;
    if (n < MrpHeader::kSize) continue;
    // Although the header counts it.
    bytes[11] = static_cast<std::uint8_t>(n);
    const bool members = (n - MrpHeader::kSize) % MrpMember::kSize == 0;
    EXPECT_EQ(MrpMessage::parse(std::span(bytes).first(n)).has_value(), members) << n;
    bytes[11] = static_cast<std::uint8_t>(bytes.size() - 1);
  }
}

TEST(MrpMessage, SkipsOnlyOptionalRecords) {
  const std::vector<std::uint8_t> optional = {0x92, 2, 7, 7, 7, 7, 7, 7};
  const auto message = MrpMessage::parse(with_record(optional));
  ASSERT_TRUE(message);
  ASSERT_EQ(message->member_count, 1u);
  EXPECT_EQ(message->members[0].qpn, Qpn(1));
  EXPECT_TRUE(std::ranges::equal(message->skipped_records(), optional)) << "to be passed on";
  const auto passed_on = MrpMessage::parse(bytes_of(*message));
  ASSERT_TRUE(passed_on);
  EXPECT_TRUE(same(*passed_on, *message));
  EXPECT_TRUE(std::ranges::equal(passed_on->skipped_records(), optional));
  auto mandatory = optional;
  mandatory[0] = 0x12;
  EXPECT_FALSE(MrpMessage::parse(with_record(mandatory)));
}

TEST(MrpMessage, RefusesRecordsWithoutLengthOrBeyondTheEnd) {
  EXPECT_FALSE(MrpMessage::parse(with_record({0x92, 0, 0, 0})));
  EXPECT_FALSE(MrpMessage::parse(with_record({0x92, 6, 0, 0})));
  EXPECT_TRUE(MrpMessage::parse(with_record({0x92, 5, 0, 0}))) << "the member is part of it";
  EXPECT_FALSE(MrpMessage::parse(with_record({1, 3, 0, 0, 10, 0, 0, 1, 0, 0, 0, 1})))
      << "a member of another length";
}

// A leader's REGISTER of version 1, and the answer that it can read.
TEST(MrpRefusal, AnswersARegisterOfAnotherVersionInThatVersion) {
  const std::vector<std::uint8_t> requested = {1,   1,  0, 0, 0, 7, 0, 2, 0, 3, 0, 0,  //
                                               198, 18, 0, 1, 1, 2, 3, 4,              //
                                               10,  0,  0, 2, 0, 0, 0, 17};
  EXPECT_FALSE(MrpMessage::parse(requested));
  const auto answer = refuse_version(requested);
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, (MrpRefusal{1, 3, 0, 9, 0, 7, 0, 0, 0, 1, 0, 20, 198, 18, 0, 1, 1, 2, 3, 4}));
  EXPECT_EQ(group_of(*answer), McstId(198, 18, 0, 1));
  for (const int type : {0, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
    auto other = requested;
    other[1] = static_cast<std::uint8_t>(type);
    EXPECT_FALSE(refuse_version(other)) << "no host waits for an answer to type " << type;
  }
  for (std::size_t n = 0; n < MrpHeader::kSize; ++n) {
    EXPECT_FALSE(refuse_version(std::span(requested).first(n)));
  }
}

TEST(MrpRefusal, AnswersARegisterWithAnUnknownRequiredRecord) {
  const auto requested = with_record({0x02, 2, 0, 0, 0, 0, 0, 0});
  const auto answer = refuse_version(requested);
  ASSERT_TRUE(answer);
  const auto read = MrpMessage::parse(*answer);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->header.type, MrpType::kReject);
  EXPECT_EQ(read->header.flags, static_cast<std::uint16_t>(MrpReject::kVersion));
  EXPECT_FALSE(refuse_version(with_record({0x92, 2, 0, 0, 0, 0, 0, 0})));
  EXPECT_FALSE(refuse_version(with_record({0x02, 0, 0, 0}))) << "malformed";
}

TEST(MrpRefusal, AnswersARegisterWithAReductionOfAnotherVersion) {
  EXPECT_TRUE(refuse_version(with_record({8, 2, 1, 2, 0x10, 0, 0, 64}))) << "reserved";
  EXPECT_TRUE(refuse_version(with_record({8, 3, 1, 0, 0x10, 0, 0, 64, 0, 0, 0, 0}))) << "longer";
  EXPECT_FALSE(refuse_version(with_record({8, 30, 1, 0, 0x10, 0, 0, 64}))) << "cut off";
}

TEST(MrpMessage, RefusesOtherVersionsAndUnknownTypes) {
  auto bytes = bytes_of(MrpMessage{});
  for (int version = 0; version < 256; ++version) {
    bytes[0] = static_cast<std::uint8_t>(version);
    EXPECT_EQ(MrpMessage::parse(bytes).has_value(), version == MrpHeader::kVersion) << version;
  }
  bytes[0] = MrpHeader::kVersion;
  for (int type = 0; type < 256; ++type) {
    bytes[1] = static_cast<std::uint8_t>(type);
    EXPECT_EQ(MrpMessage::parse(bytes).has_value(), type >= 1 && type <= 20) << type;
  }
}

TEST(MrpMessage, IsNotWrittenIntoTooSmallABuffer) {
  MrpMessage m;
  m.add({Ipv4(10, 0, 0, 1), Qpn(1), 0});
  std::vector<std::uint8_t> out(35, 0xA5);
  EXPECT_EQ(m.emit(out), 0u);
  EXPECT_EQ(out, std::vector<std::uint8_t>(35, 0xA5));
  out.resize(36);
  EXPECT_EQ(m.emit(out), 36u);
}

TEST(Mrp, NamesEveryTypeAndReason) {
  std::set<std::string> names;
  for (int i = 1; i <= 14; ++i) names.insert(to_string(static_cast<MrpType>(i)));
  EXPECT_EQ(names.size(), 14u);
  EXPECT_FALSE(names.contains(to_string(static_cast<MrpType>(15))));
  names.clear();
  for (int i = 0; i <= 14; ++i) names.insert(to_string(static_cast<MrpReject>(i)));
  EXPECT_EQ(names.size(), 15u);
  EXPECT_FALSE(names.contains(to_string(static_cast<MrpReject>(15))));
}

RC_GTEST_PROP(Epoch, IsNewerInOneDirectionOnly, (std::uint16_t epoch)) {
  const auto later = static_cast<std::uint16_t>(epoch + *rc::gen::inRange(1, 0x8000));
  RC_ASSERT(newer_epoch(later, epoch));
  RC_ASSERT(!newer_epoch(epoch, later));
  RC_ASSERT(!newer_epoch(epoch, epoch));
}

// Hosts and switches of different builds must agree: these values are part of the protocol.
TEST(GroupStartPsn, IsFixedForever) {
  EXPECT_EQ(group_start_psn(McstId(198, 18, 0, 0), 0), Psn(0x95728D));
  EXPECT_EQ(group_start_psn(McstId(198, 18, 0, 1), 1), Psn(0xB1F8A8));
  EXPECT_EQ(group_start_psn(McstId(198, 19, 255, 255), 0xFFFF), Psn(0x23A7D1));
}

TEST(GroupStartPsn, IsSpreadOverTheCircleBelowTheStaleAcks) {
  std::array<int, 0xFF> hits{};
  for (std::uint32_t id = 0; id < 256; ++id) {
    for (std::uint16_t epoch = 0; epoch < 255; ++epoch) {
      const Psn psn = group_start_psn(McstId(kDefaultMcstPool.base.value() + id), epoch);
      ASSERT_LT(psn.value(), 0xFF0000u);
      ++hits[psn.value() >> 16];
    }
  }
  for (const int n : hits) {  // 256 expected in each, with a standard deviation of 16
    EXPECT_GT(n, 256 - 6 * 16);
    EXPECT_LT(n, 256 + 6 * 16);
  }
}

TEST(MacFor, NamesTheAddressInALocalMac) {
  EXPECT_EQ(mac_for(Ipv4(10, 1, 2, 3)).to_string(), "02:ce:0a:01:02:03");
}

}  // namespace
}  // namespace cepheus::wire
