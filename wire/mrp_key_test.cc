#include "wire/mrp_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cepheus::wire {
namespace {

using testing::HasSubstr;

constexpr Ipv4 kLeader{10, 0, 0, 1};
constexpr char kHex[] = "000102030405060708090a0b0c0d0e0f\n";

std::vector<std::uint8_t> signed_message(const MrpKey& key, std::size_t members = 2) {
  MrpMessage m;
  m.header.mcst_id = McstId(198, 18, 0, 1);
  for (std::size_t i = 0; i < members; ++i) m.add({Ipv4(10, 0, 0, 2), Qpn(7), 0});
  std::vector<std::uint8_t> bytes(MrpMessage::kMaxDatagram);
  bytes.resize(key.sign(kLeader, bytes, m.emit(bytes)));
  return bytes;
}

// RFC 4231's construction, made with another implementation:
// printf '\x0a\x00\x00\x01abc' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0001...0f
TEST(MrpKey, IsHmacSha256OverSourceAndMessage) {
  const auto key = MrpKey::parse(kHex);
  std::vector<std::uint8_t> bytes{'a', 'b', 'c'};
  bytes.resize(3 + MrpKey::kTagSize);
  ASSERT_EQ(key->sign(kLeader, bytes, 3), bytes.size());
  const std::vector<std::uint8_t> tag(bytes.begin() + 3, bytes.end());
  EXPECT_EQ(
      tag, (std::vector<std::uint8_t>{0xcb, 0xf1, 0xcf, 0x8e, 0x0a, 0x7a, 0x76, 0x44, 0x7b, 0x25,
                                      0x86, 0x8a, 0x0f, 0x3b, 0x5f, 0x5d, 0xf6, 0x41, 0x9e, 0x47}));
}

TEST(MrpKey, SignsNothingWithoutSpaceForItsTag) {
  const auto key = MrpKey::parse(kHex);
  std::vector<std::uint8_t> bytes(MrpKey::kTagSize + 3);
  EXPECT_EQ(key->sign(kLeader, bytes, 3), bytes.size());
  EXPECT_EQ(key->sign(kLeader, bytes, 4), 0u);
  bytes.resize(MrpKey::kTagSize);
  EXPECT_EQ(key->sign(kLeader, bytes, 0), bytes.size());
  bytes.pop_back();
  EXPECT_EQ(key->sign(kLeader, bytes, 0), 0u);
}

TEST(MrpKey, AcceptsItsOwnSignature) {
  const auto key = MrpKey::parse(kHex);
  const auto bytes = signed_message(*key);
  const auto message = key->verify(kLeader, bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(MrpMessage::parse(*message)->member_count, 2u);
}

TEST(MrpKey, RefusesEveryFlippedBitAndEveryOtherLength) {
  const auto key = MrpKey::parse(kHex);
  const auto bytes = signed_message(*key);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto changed = bytes;
    changed[bit / 8] = static_cast<std::uint8_t>(changed[bit / 8] ^ 1u << bit % 8);
    EXPECT_FALSE(key->verify(kLeader, changed)) << bit;
  }
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(key->verify(kLeader, std::span(bytes).first(n))) << n;
  }
}

TEST(MrpKey, RefusesAnotherSourceAndAnotherKey) {
  const auto key = MrpKey::parse(kHex);
  const auto other = MrpKey::parse("ff0102030405060708090a0b0c0d0e0f");
  const auto bytes = signed_message(*key);
  EXPECT_FALSE(key->verify(Ipv4(10, 0, 0, 2), bytes));
  EXPECT_FALSE(other->verify(kLeader, bytes));
}

TEST(MrpKey, SignedDatagramsAreMalformedWithoutAKey) {
  const auto key = MrpKey::parse(kHex);
  EXPECT_FALSE(MrpMessage::parse(signed_message(*key)));
  EXPECT_FALSE(MrpMessage::parse(signed_message(*key, 0)));
}

TEST(MrpKey, FitsTheLongestMessageIntoADatagram) {
  const auto key = MrpKey::parse(kHex);
  const std::size_t size = signed_message(*key, MrpMessage::kMaxMembers).size();
  EXPECT_LE(size, MrpMessage::kMaxDatagram);
  EXPECT_GT(size + MrpMember::kSize, MrpMessage::kMaxDatagram);
}

TEST(MrpKey, RefusesKeysThatAreTooShortOrNoHexadecimal) {
  for (const char* text : {"", "00", "0001020304050607", "000102030405060708090a0b0c0d0e0",
                           "passwordpasswordpasswordpassword"}) {
    const auto key = MrpKey::parse(text);
    ASSERT_FALSE(key) << text;
    EXPECT_THAT(key.error().text, HasSubstr("openssl rand -hex 32"));
  }
}

TEST(MrpKey, RefusesFilesThatItCannotRead) {
  for (const char* path : {"/", "/no/such/file"}) {
    const auto key = MrpKey::read(path, "can't read the key");
    ASSERT_FALSE(key) << path;
    EXPECT_EQ(key.error().text, "can't read the key") << path;
  }
}

}  // namespace
}  // namespace cepheus::wire
