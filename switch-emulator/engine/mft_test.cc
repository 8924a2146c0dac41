#include "switch-emulator/engine/mft.h"

#include <gtest/gtest.h>

#include <set>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

TEST(MessageEnds, AreCountedOnceAndForgotten) {
  MessageEnds ends;
  const Psn from(Psn::kMask - 1);  // over the wrap
  for (const int psn : {1, 3, 3, 4}) ends.note(from + psn, from);
  EXPECT_EQ(ends.take(from, from + 3), 2u);
  EXPECT_EQ(ends.take(from, from + 3), 0u);
  EXPECT_EQ(ends.take(from + 3, from + 10), 1u);
}

TEST(MessageEnds, FarBeyondTheAggregateAreNotNoted) {
  MessageEnds ends;
  ends.note(Psn(0) + MessageEnds::kWindow + 1, Psn(0));
  ends.note(Psn(5), Psn(5));
  ends.note(Psn(0) + MessageEnds::kWindow, Psn(0));
  EXPECT_EQ(ends.take(Psn(0), Psn(0) + 4 * MessageEnds::kWindow), 1u);
}

TEST(Mft, NamesEveryPortOfAWideSwitch) {
  auto net = make_star(600);
  EXPECT_EQ(net->view().paths.size(), 600u);
  net->data(599, 0);
  EXPECT_EQ(net->count(Counter::kDataCopies), 599u);
  Group group(TestNetwork::kGroup, 1, 5000);
  for (std::uint16_t p = 0; p < 4500; ++p) group.add_path(PortId(4999 - p), true);
  EXPECT_EQ(group.find(PortId(4999)), 0);
  EXPECT_EQ(group.find(PortId(500)), 4499);
  EXPECT_EQ(group.find(PortId(499)), kNoPath);
}

TEST(Mft, TableBytesAddUpByField) {
  std::size_t small = 0, large = 0;
  for (const auto& [field, bytes] : Switch::table_bytes(64, 2)) small += bytes;
  for (const auto& [field, bytes] : Switch::table_bytes(64, 64)) large += bytes;
  EXPECT_EQ(large - small, 62 * sizeof(Path));
  EXPECT_EQ(small, sizeof(Group) + 64 * sizeof(PathNo) + 2 * sizeof(Path));
}

TEST(Views, ShowWhoLags) {
  auto net = make_star(3);
  net->message(0, 0, 4);
  net->ack(1, 4);
  net->ack(2, 1);
  EXPECT_EQ(net->path_view(1).lag, 0u);
  EXPECT_EQ(net->path_view(2).lag, 3u);
  EXPECT_TRUE(net->path_view(0).is_source);
  EXPECT_EQ(net->path_view(0).lag, 0u);
  const GroupView view = net->view();
  EXPECT_EQ(view.data_packets, 5u);
  EXPECT_EQ(view.copies, 10u);
  EXPECT_EQ(view.data_bytes, 5u * 64);
  EXPECT_EQ(view.leader, TestNetwork::ip(0));
}

TEST(Counters, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (std::size_t c = 0; c < static_cast<std::size_t>(Counter::kCount); ++c) {
    EXPECT_TRUE(names.insert(name(static_cast<Counter>(c))).second) << c;
  }
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Rules, AreSetByName) {
  for (const char* const* rule = net::kSafetyRules; *rule != nullptr; ++rule) {
    Rules rules;
    EXPECT_TRUE(set_rule(rules, *rule, false)) << *rule;
  }
  Rules rules;
  set_rule(rules, "gate", false);
  EXPECT_FALSE(rules.gate);
  EXPECT_TRUE(rules.nak_ordering);
  EXPECT_FALSE(set_rule(rules, "no such rule", false));
}

}  // namespace
}  // namespace cepheus::fabric
