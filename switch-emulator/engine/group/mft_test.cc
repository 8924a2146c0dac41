#include "switch-emulator/engine/group/mft.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/group/group.h"
#include "switch-emulator/engine/registration/roster.h"
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

// As with a NIC without a window of packets.
TEST(MessageEnds, AreKeptHoweverManyAreUnderWay) {
  MessageEnds ends;
  const Psn from(Psn::kMask - 2'000);  // over the wrap
  const std::size_t idle = ends.bytes();
  for (std::int64_t i = 0; i <= 10'000; i += 2) ends.note(from + i, from);
  EXPECT_EQ(ends.take(from, from + 3'000), 1'500u);
  ends.note(from + Turn::kMostUnderWay, from + 3'000);
  EXPECT_EQ(ends.take(from + 3'000, from + Turn::kMostUnderWay), 3'501u);
  EXPECT_LE(ends.bytes(), idle + (512u << 10));
  ends.clear();
  EXPECT_EQ(ends.bytes(), idle);
}

TEST(Mft, TakesMemoryForItsOwnPortsOnly) {
  const SwitchConfig config;
  Mft mft(TestNetwork::kGroup, 1);
  mft.behaviour = *make_behaviour(mft, config);
  mft.add_path(PortId(3), true);
  mft.add_path(PortId(7), false);
  EXPECT_EQ(mft.path_index.size(), 8u);
  EXPECT_EQ(mft.find(PortId(7)), 1);
  EXPECT_EQ(mft.find(PortId(60'000)), kNoPath);
}

// In the paper a table of 64 paths has 704 bytes.
TEST(Mft, FitsAHardwareTable) {
  const auto bytes = [](std::size_t paths) {
    return TableBytes::sum(Switch::table_bytes({.ports = 64, .paths = paths}).table);
  };
  EXPECT_LE(bytes(64), 1664u);
  // The CNP filter counts 16 bits a path, and has 26 bytes of its own.
  constexpr std::size_t kPath = sizeof(Path) + sizeof(PathTurns) + sizeof(std::uint16_t);
  constexpr std::size_t kFilter = 26;
  EXPECT_EQ(bytes(64) - bytes(2), 62 * kPath);
  constexpr std::size_t kBeside = sizeof(Naks) - Naks::kTableBytes;
  EXPECT_EQ(bytes(2),
            sizeof(Mft) + sizeof(Group) - kBeside + 64 * sizeof(PathNo) + 2 * kPath + kFilter);
}

TEST(Mft, CountsStateOutsideTheTableSeparately) {
  auto net = make_star(3);
  const GroupView idle = net->view();
  const TableBytes bytes = Switch::table_bytes({.ports = 3, .paths = 3});
  EXPECT_EQ(idle.table_bytes, TableBytes::sum(bytes.table));
  EXPECT_EQ(idle.beside_bytes, TableBytes::sum(bytes.beside));
  EXPECT_GT(idle.beside_bytes, 3 * sizeof(Evidence) + MessageEnds().bytes() + sizeof(Roster));
  net->message(0, 0, 4);
  net->data(1, 5);
  EXPECT_EQ(net->view().table_bytes, idle.table_bytes);
  EXPECT_EQ(net->view().beside_bytes, idle.beside_bytes) << "the gate's frame is in the store";
}

TEST(Views, ShowLaggingMembers) {
  auto net = make_star_amid(3, 4);
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

}  // namespace
}  // namespace cepheus::fabric
