#include "fabric-sim/checked/forgery.h"

#include <gtest/gtest.h>

#include <map>

#include "fabric-sim/checked/scenario_plan.h"
#include "fabric-sim/core/network.h"
#include "wire/publication.h"
#include "wire/roce.h"
#include "wire/sender_group.h"

namespace cepheus::sim {
namespace {

// Three hosts are members of a group, the last one is the forger.
class ForgeryTest : public testing::Test {
 protected:
  ForgeryTest() {
    plan_.topology = net::Topology::star(4);
    GroupPlan group;
    group.id = wire::McstId(198, 18, 0, 1);
    group.members = {{0, 1}, {1, 1}, {2, 1}};
    plan_.groups = {group};
  }
  GroupPlan& group() { return plan_.groups.front(); }
  const Host& forger() { return network_.host(3); }

  ScenarioPlan plan_;
  Simulator simulator_{1000};
  Network network_{simulator_, net::Topology::star(4), std::vector<rnic::NicConfig>(4)};
};

TEST_F(ForgeryTest, LeavesPlainGroupsAlone) {
  Forgery forgery(plan_);
  EXPECT_FALSE(forgery.next(forger(), group()));
}

TEST_F(ForgeryTest, ForgesPartsOfReductions) {
  plan_.reduces = true;
  Forgery forgery(plan_);
  int to_switch = 0, of_members = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto frame = forgery.next(forger(), group());
    ASSERT_TRUE(frame);
    const auto headers = wire::RoceHeaders::parse(*frame);
    ASSERT_TRUE(headers);
    EXPECT_EQ(headers->bth.opcode, wire::Opcode::kRcSendOnlyImm);
    to_switch += headers->ip.destination == group().id ? 1 : 0;
    of_members += headers->ip.source == network_.host(0).address() ? 1 : 0;
  }
  EXPECT_GT(to_switch, 500);
  EXPECT_GT(of_members, 50);
}

TEST_F(ForgeryTest, ForgesMessagesOfASenderGroupsMembers) {
  group().has_one_sender = true;
  Forgery forgery(plan_);
  std::map<wire::MrpType, int> types;
  int packets = 0, own = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto frame = forgery.next(forger(), group());
    ASSERT_TRUE(frame);
    if (const auto headers = wire::RoceHeaders::parse(*frame)) {
      packets += headers->bth.destination_qp == virtual_qpn_of(group()) ? 1 : 0;
      own += headers->ip.source == forger().address() ? 1 : 0;
      continue;
    }
    const auto message = wire::SenderGroupMessage::parse(frame->payload());
    ASSERT_TRUE(message);
    const wire::Ipv4 sender = network_.host(0).address();
    EXPECT_EQ(message->sender(), sender);
    EXPECT_EQ(message->start, wire::sender_group_start_psn(sender, virtual_qpn_of(group())));
    ++types[message->header.type];
  }
  EXPECT_GT(packets, 200);
  EXPECT_GT(own, 200);
  for (const auto type :
       {wire::MrpType::kInstall, wire::MrpType::kInstalled, wire::MrpType::kRemove,
        wire::MrpType::kReject, wire::MrpType::kQuery, wire::MrpType::kReport}) {
    EXPECT_GT(types[type], 20) << to_string(type);
  }
}

TEST_F(ForgeryTest, PublishesRegionsOfMembers) {
  group().region_bytes = 1000;
  Forgery forgery(plan_);
  int spoofed = 0;
  for (int i = 0; i < 100; ++i) {
    const auto frame = forgery.next(forger(), group());
    ASSERT_TRUE(frame);
    ASSERT_TRUE(wire::Publication::parse(frame->payload()));
    const auto datagram = wire::UdpDatagram::parse(*frame);
    ASSERT_TRUE(datagram);
    EXPECT_EQ(datagram->ip.destination, group().id);
    spoofed += datagram->ip.source != forger().address() ? 1 : 0;
  }
  EXPECT_GT(spoofed, 20);
}

}  // namespace
}  // namespace cepheus::sim
