// Reductions with their root elsewhere than at the leader's switch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "switch-emulator/engine/reduction/test_members.h"
#include "switch-emulator/engine/reduction/test_trees.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using testing::UnorderedElementsAre;
using wire::MrpType;

// A host at each switch in `tree.hosts`; host 0, which leads, is at `leader`.
std::unique_ptr<TestNetwork> network_of(const TestTree& tree, std::size_t leader) {
  auto net = std::make_unique<TestNetwork>();
  for (std::size_t s = 0; s < tree.size; ++s) net->add_switch();
  for (std::size_t s = 0; s < tree.size; ++s) {
    for (const std::size_t to : tree.next[s]) {
      if (s < to) net->link(s, to);
    }
  }
  net->add_host(leader);
  for (std::size_t s = 0; s < tree.size; ++s) {
    if (s != leader && tree.has_host(s)) net->add_host(s);
  }
  net->start();
  return net;
}

void expect_few_links(const TestTree& tree, std::size_t leader) {
  auto net = network_of(tree, leader);
  const auto hosts = static_cast<std::size_t>(std::popcount(tree.hosts));
  TestMembers members(*net, hosts, 4, 8);
  int least = tree.links(0), of_root = 0, roots = 0;
  for (std::size_t s = 0; s < tree.size; ++s) {
    least = std::min(least, tree.links(s));
    if (!net->view(s).reduction->is_root) continue;
    ++roots;
    of_root = tree.links(s);
  }
  ASSERT_EQ(roots, 1);
  ASSERT_EQ(of_root, least);
  std::map<std::pair<std::size_t, std::size_t>, Texts> sent;
  net->lose = [&](std::size_t from, std::size_t to, const std::string& text) {
    if (text.starts_with("data")) sent[{from, to}].push_back(text);
    return false;
  };
  for (Unit unit = 0; unit < 3; ++unit) {
    for (std::size_t m = 0; m < hosts; ++m) ASSERT_TRUE(members.contribute((m + unit) % hosts));
    members.receive_all();
    for (std::size_t m = 0; m < hosts; ++m) ASSERT_TRUE(members.is_done(m, unit + 1));
  }
  ASSERT_EQ(sent.size(), 2 * (tree.size - 1)) << "partial results one way, results the other";
  for (const auto& [way, texts] : sent) ASSERT_EQ(texts, Texts({"data 0", "data 1", "data 2"}));
}

TEST(ReductionRoot, IsInTheMiddleOfEveryTree) {
  int cases = 0;
  for_each_tree(4, [&](TestTree tree) {
    for (tree.hosts = 1; tree.hosts < 1u << tree.size; ++tree.hosts) {
      if (!tree.is_of_a_group() || std::popcount(tree.hosts) < 2) continue;
      for (std::size_t leader = 0; leader < tree.size; ++leader) {
        if (!tree.has_host(leader) || testing::Test::HasFailure()) continue;
        SCOPED_TRACE(testing::Message() << tree.size << " switches, hosts at " << tree.hosts
                                        << ", leader at " << leader);
        expect_few_links(tree, leader);
        ++cases;
      }
    }
  });
  EXPECT_GT(cases, 100);
}

// Leaves 0 and 2 with two hosts each, and a spine between them. Host 0 leads.
class SpineRoot : public testing::Test {
 protected:
  static std::unique_ptr<TestNetwork> make_leaves_and_spine() {
    auto net = std::make_unique<TestNetwork>();
    for (int s = 0; s < 3; ++s) net->add_switch();
    net->link(0, 1);
    net->link(1, 2);
    for (int h = 0; h < 4; ++h) net->add_host(h < 2 ? 0 : 2);
    net->start();
    return net;
  }
  void contribute(std::initializer_list<std::size_t> members) {
    for (const std::size_t m : members) EXPECT_TRUE(members_.contribute(m));
  }
  // In the REPORTs of all switches; 0: none names it.
  std::uint8_t flags_of(std::size_t host) {
    net_->clear();
    net_->control(0, MrpType::kQuery, 1);
    for (const auto& bytes : net_->frames(0)) {
      const auto report = wire::MrpMessage::parse(Frame::from_bytes(bytes)->payload());
      for (const wire::MrpMember& member : report ? report->list() : std::span<wire::MrpMember>()) {
        if (member.host == TestNetwork::ip(host)) return member.flags;
      }
    }
    return 0;
  }

  std::unique_ptr<TestNetwork> net_ = make_leaves_and_spine();
  TestMembers members_{*net_, 4, 8, 8};
};

TEST_F(SpineRoot, GetsPartialResultsFromTheLeadersSide) {
  Texts trunk;
  net_->lose = [&](std::size_t from, std::size_t to, const std::string& text) {
    trunk.push_back(std::to_string(from) + " to " + std::to_string(to) + " " + text);
    return false;
  };
  contribute({0, 1});
  EXPECT_EQ(trunk, Texts({"0 to 1 data 0"}));
  contribute({2, 3});
  EXPECT_EQ(trunk.at(1), "2 to 1 data 0");
  trunk.erase(trunk.begin(), trunk.begin() + 2);
  EXPECT_THAT(trunk, UnorderedElementsAre("1 to 0 data 0", "1 to 2 data 0"));
  EXPECT_TRUE(net_->view(1).reduction->is_root);
  members_.receive_all();
  for (std::size_t m = 0; m < 4; ++m) EXPECT_TRUE(members_.is_done(m, 1));
}

// No contribution from elsewhere reaches the leader's switch, so a QUERY has to show the wait.
TEST_F(SpineRoot, WaitsForLateMembersAtTheLeadersSwitch) {
  contribute({2, 3});
  net_->advance(2s);
  EXPECT_EQ(net_->inbox(0), Texts());
  EXPECT_EQ(flags_of(0), wire::kMemberLate);
  EXPECT_EQ(flags_of(1), wire::kMemberLate);
  EXPECT_EQ(flags_of(2), 0);
  net_->clear();
  net_->advance(1s);
  for (const std::size_t m : {0, 1}) EXPECT_EQ(net_->inbox(m), Texts({"data -1"})) << m;
  for (int second = 0; second < 3; ++second) {
    net_->control(0, MrpType::kQuery, 1);
    net_->ack(0, -1);
    net_->advance(1s);
  }
  EXPECT_EQ(flags_of(1), wire::kMemberOwes) << "its device leaves probes unanswered";
  EXPECT_EQ(flags_of(0), wire::kMemberLate) << "the leader's device has answered";
  contribute({0, 1});
  members_.receive_all();
  net_->advance(40ms);
  members_.receive_all();
  for (std::size_t m = 0; m < 4; ++m) EXPECT_EQ(members_.results(m), 1u);
}

TEST_F(SpineRoot, WaitsForLateMembersAtAnotherSwitch) {
  contribute({0, 1});
  EXPECT_EQ(flags_of(2), wire::kMemberLate);
  EXPECT_EQ(flags_of(0), 0);
  contribute({2});
  EXPECT_EQ(flags_of(2), 0);
  EXPECT_EQ(flags_of(3), wire::kMemberLate);
  net_->advance(1s);
  EXPECT_EQ(net_->inbox(3), Texts({"data -1"})) << "member 2 waits for it";
}

TEST_F(SpineRoot, ShowsItsTrunksLate) {
  contribute({2, 3});
  const GroupView root = net_->view(1);
  EXPECT_EQ(root.reduction->newest, 1u);
  for (const PathView& path : root.paths) {
    EXPECT_EQ(path.late.has_value(), path.name == "s0") << path.name;
  }
}

TEST_F(SpineRoot, NamesTheLeaderForMembersAtItsSideThatDiffer) {
  for (const std::size_t m : {2, 3}) members_.send(m, 0, kOr, Bytes(8, 1));
  for (const std::size_t m : {0, 1}) members_.send(m, 0, kBarrier, {});
  EXPECT_EQ(net_->inbox(0).back(),
            "reject e1 members that reduce different things 10.0.0.3 10.0.0.1");
}

TEST_F(SpineRoot, DropsPacketsThatGoTheWrongWay) {
  wire::RoceHeaders partial;
  net_->on_trunk = [&](std::size_t from, std::size_t, const wire::RoceHeaders& h) {
    if (from == 0) partial = h;
  };
  contribute({0, 1});
  ASSERT_EQ(partial.ip.source, net_->sw(0).config().address);
  const auto inject = [&](const wire::RoceHeaders& h, std::size_t at, std::size_t from) {
    const Frame frame = net_->make_frame(0, h, 8);
    std::array<std::uint8_t, 256> bytes;
    const std::size_t size = frame.to_bytes(bytes);
    net_->inject_at(at, net_->port_between(at, from), {bytes.begin(), bytes.begin() + size});
  };
  wire::RoceHeaders result = partial;  // as if the leader's switch were the root
  result.ip.source = partial.ip.destination;
  result.ip.destination = net_->sw(1).config().address;
  inject(result, 1, 0);
  EXPECT_EQ(net_->count(Counter::kDropMalformed, 1), 1u);
  wire::RoceHeaders down = partial;  // as if it were the spine's parent
  down.ip.source = net_->sw(1).config().address;
  inject(down, 0, 1);
  EXPECT_EQ(net_->count(Counter::kDropMalformed, 0), 1u);
  EXPECT_EQ(net_->view(0).reduction->results, 0u);
}

// The first packet of one kind on a trunk is lost.
class LostBesideTheRoot : public SpineRoot, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, LostBesideTheRoot,
                         testing::Values("0 to 1 data 1", "2 to 1 data 1", "1 to 0 data 1",
                                         "1 to 2 data 1", "0 to 1 ack 1", "2 to 1 ack 1",
                                         "1 to 0 ack 1", "0 to 1 data 0", "1 to 0 data 0",
                                         "0 to 1 ack 3"));

TEST_P(LostBesideTheRoot, IsRepeated) {
  bool is_lost = false;
  net_->lose = [&](std::size_t from, std::size_t to, const std::string& text) {
    const std::string way = std::to_string(from) + " to " + std::to_string(to) + " ";
    return way + text == GetParam() && !std::exchange(is_lost, true);
  };
  constexpr Unit kUnits = 10;
  for (int round = 0; round < 100; ++round) {
    for (std::size_t m = 0; m < 4; ++m) {
      if (members_.contributed(m) < kUnits && (m != 3 || round % 2 == 1)) members_.contribute(m);
    }
    members_.receive_all();
    net_->advance(40ms);
  }
  for (std::size_t m = 0; m < 4; ++m) EXPECT_TRUE(members_.is_done(m, kUnits));
  EXPECT_TRUE(is_lost);
  for (const std::size_t s : {0, 1, 2}) EXPECT_EQ(net_->view(s).reduction->results, kUnits);
}

// ACTIVATE comes from the leader's side, and so may partial results come before it.
TEST(ReductionRoot, GetsAPartialResultAgainThatCameBeforeActivate) {
  TestTree tree{3, {}};
  tree.next[0] = {1};
  tree.next[1] = {0, 2};
  tree.next[2] = {1};
  tree.hosts = 0b101;
  auto net = network_of(tree, 0);
  net->lose = [](std::size_t from, std::size_t, const std::string& text) {
    return from == 0 && text.starts_with("activate");
  };
  TestMembers members(*net, 2, 8, 8);
  ASSERT_TRUE(net->view(0).active);
  ASSERT_FALSE(net->view(1).active);
  members.contribute(0);
  EXPECT_EQ(net->count(Counter::kDropNotActive, 1), 1u);
  net->lose = nullptr;
  net->control(0, MrpType::kActivate, 1, {net->member(1)});
  ASSERT_TRUE(net->view(2).active);
  members.contribute(1);
  net->advance(40ms);
  members.receive_all();
  for (const std::size_t m : {0, 1}) EXPECT_EQ(members.results(m), 1u);
}

TEST_F(SpineRoot, ThatHasForgottenTheGroupEndsItWhenTheLeaderQueries) {
  net_->restart(1);
  contribute({0, 1, 2, 3});
  net_->clear();
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_THAT(net_->inbox(0), testing::Contains("reject e1 members are missing in the table"));
}

TEST_F(SpineRoot, BehindACutTrunkEndsTheGroup) {
  net_->set_port(0, net_->port_between(0, 1), false);
  EXPECT_THAT(net_->inbox(0), testing::Contains(testing::HasSubstr("trunk on the way is down")));
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_THAT(net_->inbox(0), testing::Contains(testing::HasSubstr("trunk on the way is down")));
}

}  // namespace
}  // namespace cepheus::fabric
