// The record TREE of registration.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "wire/mrp.h"
#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

MrpMessage confirm_with(const MrpTree& tree) {
  MrpMessage m;
  m.header.type = MrpType::kConfirm;
  m.add({Ipv4(10, 0, 0, 2), Qpn(1)});
  m.tree = tree;
  return m;
}

TEST(MrpTree, HasTheLayoutOfItsDiagramBeforePath) {
  MrpMessage m = confirm_with({7, 0x81, Ipv4(10, 1, 2, 3), Ipv4(11, 1, 2, 3), 0x04050607});
  m.path = MrpPath{0x0102, 0x03040506};
  const auto bytes = bytes_of(m);
  const std::vector<std::uint8_t> expected = {9, 4, 7, 0x81, 10,   1, 2, 3, 11, 1, 2, 3,
                                              4, 5, 6, 7,    0x85, 2, 1, 2, 3,  4, 5, 6};
  ASSERT_EQ(bytes.size(), MrpHeader::kSize + MrpMember::kSize + expected.size());
  EXPECT_TRUE(std::equal(expected.rbegin(), expected.rend(), bytes.rbegin()));
  const auto parsed = MrpMessage::parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->tree, m.tree);
  EXPECT_EQ(parsed->path, m.path);
}

TEST(MrpTree, IsThereOnceWholeAndInConfirmConnectAndActivateAlone) {
  const Ipv4 host(10, 0, 0, 2);
  const auto bytes = bytes_of(confirm_with({1, 0, host, host, 1}));
  for (int type = 1; type <= static_cast<int>(MrpType::kConnect); ++type) {
    auto other = bytes;
    other[1] = static_cast<std::uint8_t>(type);
    const auto kind = static_cast<MrpType>(type);
    EXPECT_EQ(MrpMessage::parse(other).has_value(),
              kind == MrpType::kConfirm || kind == MrpType::kConnect || kind == MrpType::kActivate)
        << to_string(kind);
  }
  const auto with_behind = [&](std::vector<std::uint8_t> behind) {
    auto longer = bytes;
    longer.insert(longer.end(), behind.begin(), behind.end());
    longer[11] = static_cast<std::uint8_t>(longer.size());
    return MrpMessage::parse(longer);
  };
  EXPECT_TRUE(with_behind({}));
  EXPECT_FALSE(with_behind({9, 4, 1, 0, 10, 0, 0, 2, 10, 0, 0, 2, 0, 0, 0, 1})) << "twice";
  auto shorter = bytes;
  shorter.resize(bytes.size() - 4);
  shorter[11] = static_cast<std::uint8_t>(shorter.size());
  EXPECT_FALSE(MrpMessage::parse(shorter));
  shorter[shorter.size() - 11] = 3;  // its words
  EXPECT_FALSE(MrpMessage::parse(shorter));
}

TEST(MrpTree, HasAMember) {
  const Ipv4 host(10, 0, 0, 2);
  const auto is_read = [](const MrpTree& tree) {
    return MrpMessage::parse(bytes_of(confirm_with(tree))).has_value();
  };
  EXPECT_TRUE(is_read({1, 0xFF, host, host, 1})) << "unknown flags are ignored";
  EXPECT_FALSE(is_read({0, 0, host, host, 1}));
  EXPECT_FALSE(is_read({1, 0, host, host, 0}));
  EXPECT_FALSE(is_read({1, 0, Ipv4(), host, 1}));
  EXPECT_FALSE(is_read({1, 0, host, Ipv4(10, 0, 0, 1), 1}));
}

TEST(MrpTree, FitsBesideAListOfItsOwnLengthAndPath) {
  MrpMessage m = confirm_with({1, 0, Ipv4(10, 0, 0, 2), Ipv4(10, 0, 0, 2), 1});
  while (m.member_count < MrpMessage::kMaxWithReduction) m.add({Ipv4(1), Qpn(1)});
  m.path = MrpPath{4096, 68};
  EXPECT_TRUE(m.has_space_for_tree()) << "it has one";
  const auto parsed = MrpMessage::parse(bytes_of(m));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->path, m.path);
  EXPECT_EQ(parsed->tree, m.tree);
  m.tree.reset();
  EXPECT_TRUE(m.has_space_for_tree());
  m.add({Ipv4(1), Qpn(1)});
  EXPECT_FALSE(m.has_space_for_tree());
}

TEST(MrpTree, OfTwoSidesReachesTheFarthestMember) {
  MrpTree all;
  all.add({2, 1, Ipv4(9), Ipv4(20), 3});
  all.add({5, 1, Ipv4(7), Ipv4(7), 1});
  all.add({1, 1, Ipv4(8), Ipv4(12), 2});
  EXPECT_EQ(all, (MrpTree{5, 0, Ipv4(7), Ipv4(20), 6}));
}

}  // namespace
}  // namespace cepheus::wire
