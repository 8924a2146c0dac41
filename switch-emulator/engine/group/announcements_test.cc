// Multicast WRITEs that are announced one by one: the target at every member is kept by PSN.
#include "switch-emulator/engine/group/announcements.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"
#include "wire/icrc.h"

namespace cepheus::fabric {
namespace {

using wire::AnnouncedTarget;
using wire::Announcement;
using wire::Opcode;
using wire::Reth;

constexpr PortId kA(3), kB(5);

Announced at(std::int64_t first, std::uint32_t key) { return {first, 0x1000, 64, key}; }

TEST(Announcements, AreFoundByMemberAndPlace) {
  Announcements all;
  EXPECT_TRUE(all.note(kB, at(10, 1), 0));
  EXPECT_TRUE(all.note(kA, at(10, 2), 0));
  EXPECT_TRUE(all.note(kA, at(12, 3), 0));
  EXPECT_EQ(all.find(kA, 10)->rkey, 2u);
  EXPECT_EQ(all.find(kA, 12)->rkey, 3u);
  EXPECT_EQ(all.find(kB, 10)->rkey, 1u);
  EXPECT_EQ(all.find(kB, 12), nullptr);
  EXPECT_EQ(all.find(PortId(4), 10), nullptr);
  all.remove(kA);
  EXPECT_EQ(all.find(kA, 10), nullptr);
  EXPECT_NE(all.find(kB, 10), nullptr);
  all.clear();
  EXPECT_EQ(all.find(kB, 10), nullptr);
}

TEST(Announcements, AreKeptUpToTheLimitUntilTheirMemberHasAcknowledgedThem) {
  Announcements all;
  const std::uint32_t last = Announcements::kMost - 1;
  for (std::uint32_t i = 0; i <= last; ++i) EXPECT_TRUE(all.note(kA, at(2 * i, i), -1));
  EXPECT_TRUE(all.note(kA, at(0, 99), -1)) << "it replaces itself";
  EXPECT_EQ(all.find(kA, 0)->rkey, 99u);
  EXPECT_FALSE(all.note(kA, at(2 * (last + 1), 7), -1));
  EXPECT_EQ(all.find(kA, 2 * last)->rkey, last) << "no member lost data by it";
  EXPECT_TRUE(all.note(kA, at(2 * (last + 1), 7), 1));
  EXPECT_EQ(all.find(kA, 0), nullptr);
  EXPECT_EQ(all.find(kA, 2)->rkey, 1u);
}

TEST(Announcements, AreForgottenHoweverLateAfterThemTheNextOneComes) {
  for (const int bits : {22, 23, 24, 31, 32, 40}) {
    Announcements all;
    for (std::uint32_t i = 0; i < Announcements::kMost; ++i) all.note(kA, at(2 * i, i), -1);
    const std::int64_t later = std::int64_t{1} << bits;
    EXPECT_TRUE(all.note(kA, at(later + 1, 7), later)) << bits;
    EXPECT_EQ(all.find(kA, 2), nullptr) << bits;
  }
}

// --- Through switches.

void per_request(SwitchConfig& c) { c.rules.write_mode = net::WriteMode::kPerRequest; }

// The target of announcement `number` at `host`: different for each host and each WRITE.
AnnouncedTarget target(std::size_t host, std::uint32_t number, std::uint64_t length = 64) {
  return {TestNetwork::ip(host), static_cast<std::uint32_t>(0x7000 + 0x10 * number + host),
          0x10000 * (host + 1) + 0x100 * number, length};
}
std::vector<AnnouncedTarget> targets(std::size_t hosts, std::uint32_t number) {
  std::vector<AnnouncedTarget> all;
  for (std::size_t host = 0; host < hosts; ++host) all.push_back(target(host, number));
  return all;
}

std::unique_ptr<TestNetwork> star(std::size_t hosts,
                                  const std::function<void(SwitchConfig&)>& change = {}) {
  return make_star(hosts, true, [&](SwitchConfig& c) {
    per_request(c);
    if (change) change(c);
  });
}

Reth at_target(std::size_t host, std::uint32_t number, std::uint64_t offset = 0) {
  const AnnouncedTarget t = target(host, number);
  return {t.virtual_address + offset, t.rkey, 64};
}

TEST(AnnouncedWrite, ReachesTheAnnouncedTargetOfEachMember) {
  auto net = star(3);
  net->announce(0, 0, targets(3, 1));
  EXPECT_EQ(reth_at(*net, 1), Reth());
  const auto bare = Frame::from_bytes(net->frames(1).back());
  EXPECT_EQ(bare->payload_len, 0u) << "members get none of it";
  net->write(0, 1, 0, 0, 64);
  EXPECT_EQ(reth_at(*net, 1), at_target(1, 1));
  EXPECT_EQ(reth_at(*net, 2), at_target(2, 1));
  EXPECT_EQ(net->inbox(1), Texts({"data 0", "data 1"}));
  net->ack({1, 2}, 1);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"}));
  EXPECT_EQ(net->view().write_mode, "per-request");
}

TEST(AnnouncedWrite, IsAnnouncedWithADeferredIcrcToo) {
  auto net = star(2);
  net->icrc = wire::Icrc::kDeferred;
  net->announce(0, 0, targets(2, 1));
  net->write(0, 1, 0, 0, 64);
  EXPECT_EQ(reth_at(*net, 1), at_target(1, 1));
}

TEST(AnnouncedWrite, IsReadByTheMembersOwnSwitchAndGoesOnWholeToOthers) {
  auto net = make_pair_of_switches(true, per_request);
  std::vector<std::uint32_t> between;
  net->on_trunk = [&](std::size_t, std::size_t, const wire::RoceHeaders& h) {
    if (h.bth.opcode == Opcode::kRcWriteOnly) between.push_back(h.reth.rkey);
  };
  net->announce(0, 0, targets(4, 1));
  net->write(0, 1, 5, 0, 64);
  EXPECT_EQ(between, std::vector<std::uint32_t>({Announcement::kKey, 5}));
  EXPECT_EQ(reth_at(*net, 1), at_target(1, 1));
  EXPECT_EQ(reth_at(*net, 3), at_target(3, 1));
}

// Go-back-N repeats an announcement after later ones.
TEST(AnnouncedWrite, ThatIsRepeatedUsesItsOwnAnnouncement) {
  auto net = star(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    net->announce(0, 2 * i, targets(3, i));
    net->write(0, 2 * i + 1, 0, 0, 64);
  }
  net->ack(1, 5);
  net->ack(2, 0);
  net->clear();
  net->write(0, 1, 0, 0, 64);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(reth_at(*net, 2), at_target(2, 0));
  net->write(0, 5, 0, 0, 64);
  EXPECT_EQ(reth_at(*net, 2), at_target(2, 2));
}

// Under any key a delayed copy would be accepted after the announcement has arrived.
TEST(AnnouncedWrite, WaitsForAnAnnouncementThatWasLost) {
  auto net = make_pair_of_switches(true, per_request);
  net->lose = [](std::size_t, std::size_t, const std::string& text) { return text == "data 0"; };
  net->announce(0, 0, targets(4, 1));
  net->write(0, 1, 0, 0, 64, false);
  net->request(0, Opcode::kRcWriteLast, 2);
  EXPECT_EQ(net->inbox(1), Texts({"data 0", "data 1", "data 2"}));
  EXPECT_EQ(net->inbox(3), Texts({"data 2"})) << "out of sequence: it asks for all of it";
  EXPECT_EQ(net->count(Counter::kDropUnannounced, 1), 2u) << "hosts 2 and 3";
  net->lose = {};
  net->nak(3, 0);
  net->ack(1, 2);
  net->nak(2, 0);
  EXPECT_EQ(net->inbox(0), Texts({"nak 0"}));
  net->announce(0, 0, targets(4, 1));
  net->write(0, 1, 0, 0, 64);
  EXPECT_EQ(reth_at(*net, 3), at_target(3, 1));
}

// The group has no regions yet that could say that its WRITEs have no bounds.
TEST(AnnouncedWrite, ThatWasNotAnnouncedIsRefusedUnlessTheRuleOfBoundsIsOff) {
  auto net = star(2);
  net->write(0, 0, 0, 0, 64);
  EXPECT_EQ(net->count(Counter::kDropWriteRefused), 1u);
  net = star(2, [](SwitchConfig& c) { c.rules.write_bounds = false; });
  net->write(0, 0, 0, 0, 64);
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropWriteRefused), 0u);
  EXPECT_EQ(net->count(Counter::kDropUnannounced), 1u);
}

TEST(AnnouncedWrite, LongerThanAnnouncedIsRefusedAndReportedAndNotForwardedThere) {
  auto net = star(3);
  auto some = targets(3, 1);
  some[2].length = 63;
  net->announce(0, 0, some);
  net->clear();
  net->write(0, 1, 0, 0, 64, false);
  net->request(0, Opcode::kRcWriteLast, 2);
  EXPECT_EQ(net->inbox(0),
            Texts({"reject e1 a write outside a member's regions 10.0.0.3", "fatal 0 c2"}));
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->count(Counter::kDropWriteRefused), 2u);
  EXPECT_EQ(net->view().refused->host, TestNetwork::ip(2));
}

TEST(AnnouncedWrite, ToAMemberThatWasNotNamedIsRefused) {
  auto net = star(3);
  net->announce(0, 0, targets(2, 1));
  net->clear();
  net->write(0, 1, 0, 0, 64);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->inbox(0),
            Texts({"reject e1 a write outside a member's regions 10.0.0.3", "fatal 0 c2"}));
}

TEST(AnnouncedWrite, WithoutAnAnnouncementIsRefusedOnceItsMemberHasAllBeforeIt) {
  auto net = star(2);
  net->data(0, 0);
  net->write(0, 1, 7, 5, 64);
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
  EXPECT_EQ(net->inbox(0), Texts()) << "it might have been lost";
  net->ack(1, 0);
  net->clear();
  net->write(0, 1, 7, 5, 64);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->inbox(0),
            Texts({"reject e1 a write outside a member's regions 10.0.0.2", "fatal 1 c2"}));
}

// An announcement beyond the queue's limit is requested again later.
TEST(AnnouncedWrite, WaitsForAFreeEntry) {
  auto net = star(3);
  const auto most = static_cast<std::uint32_t>(Announcements::kMost);
  for (std::uint32_t i = 0; i < most; ++i) {
    net->announce(0, 2 * i, targets(3, i));
    net->write(0, 2 * i + 1, 0, 0, 64);
  }
  net->ack(1, 2 * most - 1);
  net->clear();
  net->announce(0, 2 * most, targets(3, most));
  EXPECT_EQ(net->inbox(1), Texts({"data 128"}));
  EXPECT_EQ(net->inbox(2), Texts()) << "it has acknowledged none";
  EXPECT_EQ(net->count(Counter::kDropAnnouncementSpace), 1u);
  net->ack(2, 1);
  net->announce(0, 2 * most, targets(3, most));
  net->write(0, 2 * most + 1, 0, 0, 64);
  EXPECT_EQ(reth_at(*net, 2), at_target(2, most));
}

TEST(AnnouncedWrite, IsOfItsTurnAlone) {
  auto net = star(3);
  net->announce(0, 0, targets(3, 1));
  for (const std::size_t host : {1, 2}) net->ack(host, 0);
  net->clear();
  net->write(2, 0, 0, 0, 64);  // as if another turn's announcement were its own
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->inbox(2), Texts({"fatal 0 c2"}));
}

TEST(AnnouncedWrite, NeedsNoTargetsOfEvictedMembers) {
  auto net = star(3);
  net->announce(0, 0, targets(3, 1));
  net->control(0, wire::MrpType::kEvict, 1, {net->member(2)});
  net->clear();
  net->write(0, 1, 0, 0, 64);
  EXPECT_EQ(net->inbox(1), Texts({"data 1"}));
}

TEST(AnnouncedWrite, WithoutDataNeedsNone) {
  auto net = star(2);
  auto h = net->headers_from(0, Opcode::kRcWriteOnlyImm, 0);
  net->inject(0, net->make_frame(0, h));
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
}

TEST(Announcing, IsRefusedIfItIsInvalid) {
  auto net = star(2);
  auto h = net->headers_from(0, Opcode::kRcWriteOnly, 0);
  h.reth = {0, Announcement::kKey, 64};
  net->inject(0, net->make_frame(0, h, 64));
  EXPECT_EQ(net->inbox(0), Texts({"fatal 0 c1"}));
  EXPECT_EQ(net->inbox(1), Texts());
}

// A damaged announcement would be read, and then be invisible in the counters.
TEST(Announcing, IsReadOnlyIfItsIcrcIsRight) {
  auto net = star(2, [](SwitchConfig& c) { c.check_icrc = false; });
  std::vector<std::uint8_t> list(Announcement::size_of(1));
  const AnnouncedTarget of_1[] = {target(1, 1)};
  Announcement::emit(of_1, list);
  auto h = net->headers_from(0, Opcode::kRcWriteOnly, 0);
  h.reth = {0, Announcement::kKey, static_cast<std::uint32_t>(list.size())};
  Frame frame;
  h.emit(frame, list.size());
  frame.set_external_payload(list, wire::kNoBuffer);
  wire::seal_icrc(frame);
  frame.icrc ^= 1;
  net->inject(0, frame);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropCorrupt), 1u);
}

TEST(Announcing, MustBeServedIfMembersNeedIt) {
  auto net = star(3);
  net->publish(2, 1, {}, wire::Publication::kAnnounced);
  EXPECT_EQ(net->inbox(2), Texts({"confirm e1 10.0.0.3"}));
  net->publish(2, 2, {{7, 1, 0x1000, 64}});
  EXPECT_EQ(net->inbox(2), Texts()) << "its regions would not be looked at";
  auto by_regions = make_star(3);
  by_regions->publish(2, 1, {}, wire::Publication::kAnnounced);
  EXPECT_EQ(by_regions->inbox(2), Texts());
  EXPECT_EQ(by_regions->inbox(0).size(), 1u) << "its leader gets a message";
}

}  // namespace
}  // namespace cepheus::fabric
