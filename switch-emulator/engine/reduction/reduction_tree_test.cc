// Reductions over several switches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch-emulator/engine/reduction/reduction_group.h"
#include "switch-emulator/engine/reduction/test_members.h"
#include "wire/reduction.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

// Units of `bytes` bytes: inside a frame, and beside it.
class Gather : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, Gather, testing::Values(0, 1, 8, 44, 45, 101, 4095, 4096));

TEST_P(Gather, BringsTheBlocksOfAllTogether) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 4, GetParam());
  for (Unit unit = 0; unit < 30; ++unit) {
    for (std::size_t m = 0; m < 4; ++m) ASSERT_TRUE(members.contribute((m + unit) % 4));
    members.receive_all();
    for (std::size_t m = 0; m < 4; ++m) ASSERT_TRUE(members.is_done(m, unit + 1)) << unit;
  }
  EXPECT_EQ(net->payloads.in_use(), 0u);
  net->advance(5ms);
  EXPECT_EQ(net->count(Counter::kReductionRepeated, 0), 0u);
}

TEST(ReductionTree, PassesOnePartialUpAndOneResultDown) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 8, 8);
  Texts trunk;
  net->lose = [&](std::size_t from, std::size_t, const std::string& text) {
    trunk.push_back(std::to_string(from) + " " + text);
    return false;
  };
  for (const std::size_t m : {2, 0, 1, 3}) members.contribute(m);
  EXPECT_EQ(trunk, Texts({"1 data 0", "0 data 0"})) << "the result acknowledges the partial one";
  EXPECT_FALSE(net->view(1).reduction->is_root);
  trunk.clear();
  net->advance(1ms);
  EXPECT_EQ(trunk, Texts({"1 ack 0"}));
}

TEST(ReductionTree, ShowsALateTrunkAndThatMembersElsewhereAreLate) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 8, 8);
  const wire::Instant first = net->now();
  members.contribute(0);
  net->advance(3ms);
  const auto late = [&](std::size_t at) {
    std::vector<std::string> names;
    for (const PathView& path : net->view(at).paths) {
      if (path.late) names.push_back(path.name);
    }
    return names;
  };
  EXPECT_EQ(late(0).size(), 2u) << "a member, and the trunk";
  EXPECT_EQ(late(1).size(), 0u) << "it knows of no unit";
  members.contribute(2);
  EXPECT_EQ(late(1).size(), 1u);
  EXPECT_EQ(net->path_view(3).late->since, first + 3ms);
  members.contribute(3);
  EXPECT_EQ(late(0).size(), 1u);
  EXPECT_EQ(net->path_view(1).late->since, first);
  EXPECT_EQ(net->view(1).reduction->waits_since, first + 3ms) << "its members have contributed";
}

// The first packet of one kind on the trunk is lost.
class LostOnATrunk : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, LostOnATrunk,
                         testing::Values("0 data 1", "1 data 1", "0 ack 1", "1 ack 1", "1 data 0",
                                         "0 data 0", "1 ack 3"));

TEST_P(LostOnATrunk, IsRepeated) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 4, 8);
  bool is_lost = false;
  net->lose = [&](std::size_t from, std::size_t, const std::string& text) {
    return std::to_string(from) + " " + text == GetParam() && !std::exchange(is_lost, true);
  };
  constexpr Unit kUnits = 10;
  for (int round = 0; round < 100; ++round) {
    for (std::size_t m = 0; m < 4; ++m) {
      if (members.contributed(m) < kUnits) members.contribute(m);
    }
    members.receive_all();
    net->advance(40ms);
  }
  for (std::size_t m = 0; m < 4; ++m) EXPECT_TRUE(members.is_done(m, kUnits));
  EXPECT_TRUE(is_lost);
  net->advance(10s);
  EXPECT_EQ(net->view(1).reduction->results, kUnits);
}

// The other switch would acknowledge a quarter of the window, or after 1 ms.
TEST(LossOnATrunk, TakesNoTimeOfLateAcknowledgements) {
  for (const std::size_t side : {0, 1}) {
    auto net = make_pair_of_switches(false);
    TestMembers members(*net, 4, 64, 8);
    bool is_lost = false;
    net->lose = [&](std::size_t from, std::size_t, const std::string& text) {
      return from == side && text == "data 0" && !std::exchange(is_lost, true);
    };
    for (Unit unit = 0; unit < 8; ++unit) {
      for (std::size_t m = 0; m < 4; ++m) members.contribute(m);
    }
    for (int n = 0; n < 8; ++n) members.receive_all();
    EXPECT_TRUE(is_lost);
    for (std::size_t m = 0; m < 4; ++m) EXPECT_EQ(members.results(m), 8u) << "switch " << side;
  }
}

TEST(ReductionTree, NamesOneMemberBehindATrunkThatDiffers) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 8, 0);
  for (const std::size_t m : {2, 3}) members.send(m, 0, kOr, Bytes(8, 1));
  members.send(1, 0, kBarrier, {});
  EXPECT_EQ(net->inbox(0),
            Texts({"reject e1 members that reduce different things 10.0.0.3 10.0.0.2"}));
}

TEST(ReductionTree, PassesARejectOfALeafOnToTheLeader) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 8, 0);
  members.send(2, 0, kOr, Bytes(8, 1));
  members.send(3, 0, kBarrier, {});
  EXPECT_EQ(net->inbox(0),
            Texts({"reject e1 members that reduce different things 10.0.0.3 10.0.0.4"}));
}

TEST(ReductionTree, DropsPacketsThatGoTheWrongWayOrAreOfAnotherEpoch) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 8, 0);
  wire::RoceHeaders partial;
  net->on_trunk = [&](std::size_t from, std::size_t, const wire::RoceHeaders& h) {
    if (from == 1) partial = h;
  };
  members.contribute(2);
  members.contribute(3);
  ASSERT_EQ(partial.ip.source, net->sw(1).config().address);
  ASSERT_EQ(partial.bth.destination_qp, Qpn(1));
  const auto inject = [&](wire::RoceHeaders h, std::size_t at, std::size_t from) {
    const Frame frame = net->make_frame(0, h);
    std::array<std::uint8_t, 256> bytes;
    const std::size_t size = frame.to_bytes(bytes);
    net->inject_at(at, net->port_between(at, from), {bytes.begin(), bytes.begin() + size});
  };
  auto older = partial;
  older.bth.destination_qp = Qpn(7);
  inject(older, 0, 1);
  auto down = partial;
  std::swap(down.ip.source, down.ip.destination);
  inject(down, 0, 1);
  EXPECT_EQ(net->count(Counter::kDropMalformed, 0), 2u);
  auto of_another = partial;
  of_another.ip.source = Ipv4(10, 255, 0, 99);
  inject(of_another, 0, 1);
  EXPECT_EQ(net->count(Counter::kDropMalformed, 0), 3u);
  // A result before its partial result: of unit 1.
  down.bth.psn = net->start_psn() + 1;
  down.imm.value = wire::ReductionImm{0, 0, 1, 1}.value();
  inject(down, 1, 0);
  EXPECT_EQ(net->count(Counter::kDropReductionGap, 1), 1u);
  EXPECT_EQ(net->view(0).reduction->newest, 1u);
}

// Each acknowledgement between the switches comes 1 ms late, and each sibling as well.
TEST(ReductionTree, RepeatsNothingIfOnlyAcknowledgementsAreLate) {
  auto net = make_pair_of_switches(false, [](SwitchConfig& c) { c.feedback_wait = {}; });
  TestMembers members(*net, 4, 64, 8);
  for (int unit = 0; unit < 200; ++unit) {
    for (const std::size_t m : {2, 3, 0, 1}) {
      members.contribute(m);
      members.receive_all();
      if (unit >= 100) net->advance(200us);
    }
    if (unit >= 100) net->advance(2ms);
  }
  for (const std::size_t at : {0, 1}) EXPECT_EQ(net->count(Counter::kReductionRepeated, at), 0u);
}

}  // namespace
}  // namespace cepheus::fabric
