#include "nic-emulator/engine/memory_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "nic-emulator/engine/nic.h"

namespace cepheus::rnic {
namespace {

constexpr PdId kPd = 3;
constexpr std::uint32_t kAll = kLocalWrite | kRemoteWrite;

class MemoryTableTest : public ::testing::Test {
 protected:
  MemoryTable table_{8, 42};
  std::array<std::uint8_t, 100> bytes_{};
};

TEST_F(MemoryTableTest, TranslatesInsideTheRegionOnly) {
  const std::uint32_t key = *table_.add(kPd, bytes_.data(), 100, 0x1000, kAll);
  EXPECT_EQ(table_.translate(key, kPd, 0x1000, 100, kLocalWrite), bytes_.data());
  EXPECT_EQ(table_.translate(key, kPd, 0x1063, 1, kLocalWrite), bytes_.data() + 99);
  EXPECT_EQ(table_.translate(key, kPd, 0x1063, 2, kLocalWrite), nullptr);
  EXPECT_EQ(table_.translate(key, kPd, 0x0FFF, 2, kLocalWrite), nullptr);
  EXPECT_EQ(table_.translate(key, kPd, 0x1064, 1, kLocalWrite), nullptr);
  EXPECT_EQ(table_.translate(key, kPd, ~0ull, 2, kLocalWrite), nullptr) << "wraps around";
  EXPECT_EQ(table_.translate(key, kPd, 0x1001, ~0ull, kLocalWrite), nullptr) << "wraps around";
}

TEST_F(MemoryTableTest, ChecksKeyDomainAndRights) {
  const std::uint32_t key = *table_.add(kPd, bytes_.data(), 100, 0, kLocalWrite);
  EXPECT_NE(table_.translate(key, kPd, 0, 1, 0), nullptr);
  EXPECT_EQ(table_.translate(key, kPd, 0, 1, kRemoteWrite), nullptr);
  EXPECT_EQ(table_.translate(key, kPd + 1, 0, 1, 0), nullptr);
  for (int bit = 0; bit < 32; ++bit) {
    EXPECT_EQ(table_.translate(key ^ 1u << bit, kPd, 0, 1, 0), nullptr) << "bit " << bit;
  }
}

TEST_F(MemoryTableTest, KeysOfGoneRegionsStayInvalid) {
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t key = *table_.add(kPd, bytes_.data(), 100, 0, kAll);
    EXPECT_NE(key, 0u);
    EXPECT_TRUE(seen.insert(key).second) << "key used twice";
    EXPECT_TRUE(table_.remove(key));
    EXPECT_FALSE(table_.remove(key));
    EXPECT_EQ(table_.translate(key, kPd, 0, 1, 0), nullptr);
  }
}

// The table of a program that registers regions one after the other stays small.
TEST_F(MemoryTableTest, KeysTakeTurnsAmongSixtyFourSlots) {
  constexpr std::uint32_t kSlots = 4096;
  MemoryTable large(kSlots, 42);
  std::set<std::uint32_t> slots;
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t key = *large.add(kPd, bytes_.data(), 100, 0, kAll);
    slots.insert(key % kSlots);
    large.remove(key);
  }
  EXPECT_EQ(slots.size(), 64u);
}

TEST_F(MemoryTableTest, LetsKeysBeChosenBesideItsOwn) {
  std::array<std::uint8_t, 10> other{};
  ASSERT_TRUE(table_.add_as(7, kPd, bytes_.data(), 100, 0, kAll));
  ASSERT_TRUE(table_.add_as(3, kPd, other.data(), 10, 0, kAll));
  const std::uint32_t given = *table_.add(kPd, other.data(), 10, 0, kAll);
  EXPECT_EQ(table_.translate(7, kPd, 99, 1, kRemoteWrite), bytes_.data() + 99);
  EXPECT_EQ(table_.translate(3, kPd, 9, 1, kRemoteWrite), other.data() + 9);
  EXPECT_EQ(table_.translate(3, kPd, 9, 2, kRemoteWrite), nullptr);
  EXPECT_EQ(table_.translate(3, kPd + 1, 9, 1, kRemoteWrite), nullptr);
  EXPECT_EQ(table_.translate(5, kPd, 0, 1, 0), nullptr);
  EXPECT_EQ(table_.add_as(7, kPd, other.data(), 10, 0, kAll).error().code,
            wire::ErrorCode::kRefused);
  EXPECT_TRUE(table_.remove(7));
  EXPECT_FALSE(table_.remove(7));
  EXPECT_EQ(table_.translate(7, kPd, 0, 1, 0), nullptr);
  EXPECT_NE(table_.translate(3, kPd, 0, 1, 0), nullptr);
  EXPECT_NE(table_.translate(given, kPd, 0, 1, 0), nullptr);
  EXPECT_TRUE(table_.add_as(7, kPd, other.data(), 10, 0, kAll)) << "free again";
  for (const std::uint32_t key : {0u, MemoryTable::kLastChosenKey + 1}) {
    EXPECT_EQ(table_.add_as(key, kPd, other.data(), 10, 0, kAll).error().code,
              wire::ErrorCode::kInvalid);
  }
}

TEST_F(MemoryTableTest, KeysThatAreNotSetNameNoRegion) {
  ASSERT_TRUE(table_.add_as(1, kPd, bytes_.data(), 100, 0, kAll));
  for (const std::uint32_t unset : {MemoryKeys().lkey, MemoryKeys().rkey, Sge().lkey}) {
    EXPECT_EQ(table_.translate(unset, kPd, 0, 1, 0), nullptr);
  }
}

// The program has unmapped or protected the region's second half.
TEST_F(MemoryTableTest, LosesARegionThatIsNotMappedAndKeepsAProtectedOne) {
  static const void* end_of_mapped;
  static AccessEnd beyond;
  end_of_mapped = bytes_.data() + 50;
  MemoryTable table(8, 42, true, [](const void* memory, std::size_t bytes, auto work, void* with) {
    if (static_cast<const std::uint8_t*>(memory) + bytes > end_of_mapped) return beyond;
    work(with);
    return AccessEnd::kDone;
  });
  const std::uint32_t key = *table.add(kPd, bytes_.data(), 100, 0, kAll);
  std::array<std::uint8_t, 10> data{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const Sge mapped{40, 10, key}, unmapped{41, 10, key};
  EXPECT_TRUE(scatter(table, kPd, {&mapped, 1}, 0, data));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), bytes_.begin() + 40));
  EXPECT_FALSE(table.take_lost());
  beyond = AccessEnd::kProtected;
  EXPECT_FALSE(gather(table, kPd, {&unmapped, 1}, 0, data));
  EXPECT_EQ(table.take_lost()->why, AccessEnd::kProtected);
  EXPECT_TRUE(gather(table, kPd, {&mapped, 1}, 0, data));
  beyond = AccessEnd::kUnmapped;
  EXPECT_FALSE(gather(table, kPd, {&unmapped, 1}, 0, data));
  const auto lost = table.take_lost();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->memory, bytes_.data());
  EXPECT_EQ(lost->length, 100u);
  EXPECT_FALSE(table.take_lost()) << "it is reported once";
  EXPECT_FALSE(gather(table, kPd, {&mapped, 1}, 0, data)) << "all of it is lost";
  EXPECT_TRUE(table.remove(key));
}

// A key that may be chosen is never given out, through all generations of a slot.
TEST_F(MemoryTableTest, GivesOutNoKeyThatMayBeChosen) {
  MemoryTable small(1, 42);
  for (int i = 0; i < 70000; ++i) {
    const std::uint32_t key = *small.add(kPd, bytes_.data(), 100, 0, kAll);
    ASSERT_GT(key, MemoryTable::kLastChosenKey);
    small.remove(key);
  }
}

TEST_F(MemoryTableTest, NamesTheReasonOfARefusal) {
  EXPECT_EQ(table_.add(kPd, bytes_.data(), 100, 0, kRemoteWrite).error().code,
            wire::ErrorCode::kInvalid);
  EXPECT_EQ(table_.add(kPd, nullptr, 100, 0, kAll).error().code, wire::ErrorCode::kInvalid);
  EXPECT_EQ(table_.add(kPd, bytes_.data(), 100, ~0ull - 5, kAll).error().code,
            wire::ErrorCode::kInvalid);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(table_.add(kPd, bytes_.data(), 100, 0, kAll));
  EXPECT_EQ(table_.add(kPd, bytes_.data(), 100, 0, kAll).error().code,
            wire::ErrorCode::kUnavailable);
}

TEST_F(MemoryTableTest, GatherStartsAnywhereInTheList) {
  for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::uint8_t>(i);
  const std::uint32_t key = *table_.add(kPd, bytes_.data(), 100, 0, kAll);
  const Sge sges[] = {{10, 5, key}, {0, 0, 0xBAD}, {50, 7, key}, {90, 10, key}};
  const std::array<std::uint8_t, 22> message{10, 11, 12, 13, 14, 50, 51, 52, 53, 54, 55,
                                             56, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99};
  ASSERT_EQ(total_length(sges), message.size());
  for (std::size_t from = 0; from <= message.size(); ++from) {
    for (std::size_t to = from; to <= message.size(); ++to) {
      std::vector<std::uint8_t> out(to - from);
      ASSERT_TRUE(gather(table_, kPd, sges, from, out));
      EXPECT_TRUE(std::equal(out.begin(), out.end(), message.begin() + static_cast<long>(from)));
    }
  }
  std::array<std::uint8_t, 23> too_much;
  EXPECT_FALSE(gather(table_, kPd, sges, 0, too_much));
}

}  // namespace
}  // namespace cepheus::rnic
