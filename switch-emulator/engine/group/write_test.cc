// Multicast WRITEs through switches: addressed for each member, and checked and refused at its
// switch.
#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"
#include "wire/icrc.h"

namespace cepheus::fabric {
namespace {

using wire::MrpRegion;
using wire::Opcode;
using wire::Reth;

constexpr std::uint32_t kSize = 4096;

// Region 7 of each host has its own address and key.
MrpRegion region_of(std::size_t host, std::uint64_t length = kSize) {
  return {7, static_cast<std::uint32_t>(0x7000 + host), 0x10000 * (host + 1), length};
}

void publish_all(TestNetwork& net, std::size_t hosts, std::uint16_t serial = 1) {
  for (std::size_t host = 0; host < hosts; ++host) net.publish(host, serial, {region_of(host)});
  net.clear();
}

std::unique_ptr<TestNetwork> star_with_regions(
    std::size_t hosts, const std::function<void(SwitchConfig&)>& change = {}) {
  auto net = make_star(hosts, true, change);
  publish_all(*net, hosts);
  return net;
}

std::unique_ptr<TestNetwork> pair_with_regions() {
  auto net = make_pair_of_switches();
  publish_all(*net, 4);
  return net;
}

TEST(Publish, IsConfirmedByTheOwnSwitchAndNotPassedOn) {
  auto net = make_pair_of_switches();
  net->publish(3, 1, {region_of(3)});
  EXPECT_EQ(net->inbox(3), Texts({"confirm e1 10.0.0.4"}));
  for (const std::size_t other : {0, 1, 2}) EXPECT_EQ(net->inbox(other), Texts());
  EXPECT_EQ(net->count(Counter::kMrpPublish, 0), 0u);
  ASSERT_EQ(net->path_view(3).regions.size(), 1u);
  EXPECT_EQ(net->path_view(3).regions[0].length, kSize);
}

TEST(Publish, IsConfirmedAgainIfItIsRepeated) {
  auto net = make_star(2);
  net->publish(1, 1, {region_of(1)});
  net->publish(1, 1, {region_of(1)});
  EXPECT_EQ(net->inbox(1), Texts({"confirm e1 10.0.0.2", "confirm e1 10.0.0.2"}));
  net->publish(1, 0, {});
  EXPECT_EQ(net->inbox(1), Texts()) << "late";
  EXPECT_EQ(net->count(Counter::kDropMrpStale), 1u);
  EXPECT_EQ(net->path_view(1).regions.size(), 1u);
}

TEST(Publish, IsTakenBeforeTheGroupIsActive) {
  auto net = make_star(3, false);
  net->register_group(0, 1);
  publish_all(*net, 3);
  net->control(0, wire::MrpType::kActivate, 1);
  net->clear();
  net->write(0, 0, 7, 0, 64);
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
}

TEST(Publish, IsOfAHostAboutItselfAlone) {
  auto net = make_pair_of_switches(false);
  net->register_group(0, 1, {0, 1, 2});
  net->control(0, wire::MrpType::kActivate, 1);
  net->clear();
  net->publish(3, 1, {region_of(3)});
  EXPECT_EQ(net->count(Counter::kDropNotMember, 1), 1u);
  net->epoch = 2;
  net->publish(1, 1, {region_of(1)});
  EXPECT_EQ(net->count(Counter::kDropMrpStale, 0), 1u);
  EXPECT_EQ(net->inbox(1), Texts());
}

TEST(Write, IsAddressedToEachMembersOwnRegion) {
  auto net = star_with_regions(3);
  net->write(0, 0, 7, 100, 64);
  EXPECT_EQ(reth_at(*net, 1), (Reth{0x20000 + 100, 0x7001, 64}));
  EXPECT_EQ(reth_at(*net, 2), (Reth{0x30000 + 100, 0x7002, 64}));
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
}

TEST(Write, IsAddressedWithADeferredIcrcToo) {
  auto net = star_with_regions(3);
  net->icrc = wire::Icrc::kDeferred;
  net->write(0, 0, 7, 8, 64);
  EXPECT_EQ(reth_at(*net, 2), (Reth{0x30000 + 8, 0x7002, 64}));
}

TEST(Write, IsAddressedByTheMembersOwnSwitchOnly) {
  auto net = pair_with_regions();
  std::vector<Reth> between;
  net->on_trunk = [&](std::size_t, std::size_t, const wire::RoceHeaders& h) {
    if (h.bth.opcode == Opcode::kRcWriteOnly) between.push_back(h.reth);
  };
  net->write(0, 0, 7, 100, 64);
  EXPECT_EQ(between, std::vector<Reth>({{100, 7, 64}}));
  EXPECT_EQ(reth_at(*net, 3), (Reth{0x40000 + 100, 0x7003, 64}));
}

TEST(Write, IsAddressedAgainWhenItIsRepeated) {
  auto net = star_with_regions(3);
  net->write(0, 0, 7, 100, 64);
  net->ack(1, 0);
  net->clear();
  net->write(0, 0, 7, 100, 64);
  EXPECT_EQ(net->inbox(1), Texts());
  net->write(0, 0, 7, 100, 64);
  EXPECT_EQ(reth_at(*net, 2), (Reth{0x30000 + 100, 0x7002, 64}));
}

TEST(Write, GoesToRegionsOfAnotherTurnsMembers) {
  auto net = star_with_regions(3);
  net->write(0, 0, 7, 0, 64);
  for (const std::size_t host : {1, 2}) net->ack(host, 0);
  net->clear();
  net->write(2, 0, 7, 4, 64);
  EXPECT_EQ(reth_at(*net, 0), (Reth{0x10000 + 4, 0x7000, 64}));
  EXPECT_EQ(reth_at(*net, 1), (Reth{0x20000 + 4, 0x7001, 64}));
}

TEST(Write, IsHeldByTheGateAndAddressedThen) {
  auto net = star_with_regions(3);
  net->data(0, 0);
  net->write(1, 0, 7, 16, 64);  // it has not acknowledged what member 0 sent, nor has member 2
  EXPECT_EQ(net->count(Counter::kGateHeld), 1u);
  net->clear();
  net->ack({1, 2}, 0);
  EXPECT_EQ(reth_at(*net, 2), (Reth{0x30000 + 16, 0x7002, 64}));
}

TEST(Write, BeyondARegionIsRefusedAndReportedAndNotForwardedThere) {
  auto net = star_with_regions(3);
  net->publish(2, 2, {region_of(2, 100)});
  net->clear();
  net->write(0, 0, 7, 40, 64);
  EXPECT_EQ(net->inbox(0),
            Texts({"reject e1 a write outside a member's regions 10.0.0.3", "fatal 0 c2"}));
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->count(Counter::kDropWriteRefused), 1u);
  const auto refused = net->view().refused;
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->host, TestNetwork::ip(2));
  EXPECT_EQ(refused->region, 7u);
  EXPECT_EQ(refused->offset, 40u);
  EXPECT_EQ(refused->length, 64u);
  net->write(0, 0, 7, 36, 64);
  EXPECT_EQ(net->inbox(2), Texts({"data 0"})) << "the last byte of it";
}

TEST(Write, ThatWrapsAroundTheAddressSpaceIsRefused) {
  auto net = star_with_regions(2);
  net->write(0, 0, 7, ~std::uint64_t{0} - 10, 64);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropWriteRefused), 1u);
}

TEST(Write, ToNoRegionOrARevokedOneIsRefused) {
  auto net = star_with_regions(2);
  net->write(0, 0, 8, 0, 64);
  EXPECT_EQ(net->inbox(1), Texts());
  net->publish(1, 2, {});
  net->clear();
  net->write(0, 0, 7, 0, 64);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropWriteRefused), 2u);
}

TEST(Write, WithoutAnyRegionInTheGroupIsRefused) {
  auto net = make_star(2);
  net->write(0, 0, 7, 0, 64);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->inbox(0),
            Texts({"reject e1 a write outside a member's regions 10.0.0.2", "fatal 0 c2"}));
}

TEST(Write, ThatWasRefusedDropsTheRestOfItsPackets) {
  auto net = star_with_regions(2);
  net->write(0, 0, 8, 0, 128, false);
  net->request(0, Opcode::kRcWriteLast, 1);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropWriteRefused), 2u);
  net->write(0, 0, 7, 0, 128, false);  // after a RESET another one has that PSN
  net->request(0, Opcode::kRcWriteLast, 1);
  EXPECT_EQ(net->inbox(1), Texts({"data 0", "data 1"}));
}

TEST(Write, RefusedFarAwayIsAnsweredAcrossTheTree) {
  auto net = pair_with_regions();
  net->publish(3, 2, {});
  net->clear();
  net->write(1, 0, 7, 0, 64);
  EXPECT_EQ(net->inbox(2), Texts()) << "behind the same leaf";
  EXPECT_EQ(net->inbox(3), Texts());
  EXPECT_EQ(net->inbox(1), Texts({"fatal 0 c2"}));
  EXPECT_EQ(net->inbox(0),
            Texts({"data 0", "reject e1 a write outside a member's regions 10.0.0.4"}));
}

TEST(Write, AcknowledgesNoMoreThanTheMinimumWhenItIsRefused) {
  auto net = star_with_regions(3);
  net->data(0, 0);
  net->data(0, 1);
  net->ack(1, 1);
  net->ack(2, 0);
  net->clear();
  net->write(0, 2, 9, 0, 64);
  EXPECT_EQ(net->inbox(0).back(), "fatal 1 c2");
}

TEST(Write, ThatANicRefusesIsNamedToo) {
  auto net = star_with_regions(3);
  net->write(0, 0, 7, 0, 64);
  net->clear();
  net->feedback(2, 0, wire::AckKind::kNak, static_cast<std::uint8_t>(wire::NakCode::kRemoteAccess));
  EXPECT_EQ(net->inbox(0),
            Texts({"reject e1 a write outside a member's regions 10.0.0.3", "fatal 0 c2"}));
  EXPECT_TRUE(net->view().refused->by_nic);
}

TEST(Write, NeedsNoRegionOfMembersThatWereEvicted) {
  auto net = star_with_regions(3);
  net->publish(2, 2, {});
  net->control(0, wire::MrpType::kEvict, 1, {net->member(2)});
  net->clear();
  net->write(0, 0, 7, 0, 64);
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
}

TEST(Write, WithImmediateAndNoDataNeedsNoRegion) {
  auto net = make_star(2);
  auto h = net->headers_from(0, Opcode::kRcWriteOnlyImm, 0);
  net->inject(0, net->make_frame(0, h));
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
}

TEST(WriteMode, SameKeyRewritesAndChecksNothing) {
  auto net =
      make_star(2, true, [](SwitchConfig& c) { c.rules.write_mode = net::WriteMode::kSameKey; });
  net->write(0, 0, 7, 0x123456789, 64);
  EXPECT_EQ(reth_at(*net, 1), (Reth{0x123456789, 7, 64}));
  EXPECT_EQ(net->view().write_mode, "same-key");
}

// Otherwise a WRITE to its region would go to the member with that key.
TEST(WriteMode, OtherThanRegionsRefusesPublications) {
  for (const auto mode : {net::WriteMode::kSameKey, net::WriteMode::kNone}) {
    auto net = make_star(3, true, [&](SwitchConfig& c) { c.rules.write_mode = mode; });
    net->publish(2, 1, {region_of(2)});
    EXPECT_EQ(net->inbox(2), Texts()) << "not confirmed";
    EXPECT_EQ(net->inbox(0),
              Texts({"reject e1 another write mode than the switches have 10.0.0.3"}));
    net->publish(2, 2, {});
    EXPECT_EQ(net->inbox(2), Texts({"confirm e1 10.0.0.3"})) << "it has none";
  }
}

TEST(WriteMode, NoneRefusesAsForReads) {
  auto net =
      make_star(2, true, [](SwitchConfig& c) { c.rules.write_mode = net::WriteMode::kNone; });
  net->write(0, 0, 7, 0, 64);
  EXPECT_EQ(net->inbox(0), Texts({"fatal 0 c1"}));
  EXPECT_EQ(net->inbox(1), Texts());
}

}  // namespace
}  // namespace cepheus::fabric
