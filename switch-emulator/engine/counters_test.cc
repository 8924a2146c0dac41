#include "switch-emulator/engine/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using testing::HasSubstr;
using wire::MrpType;

TEST(Counters, HaveUniqueNames) {
  std::set<std::string_view> names;
  for (std::size_t c = 0; c < static_cast<std::size_t>(Counter::kCount); ++c) {
    EXPECT_TRUE(names.insert(name(static_cast<Counter>(c))).second) << c;
  }
}

// TestNetwork holds every switch's balance after every call.
TEST(Balance, IsLostByAFrameWithoutAFate) {
  auto net = make_star(3, true, [](SwitchConfig& c) { c.rules.every_drop_counted = false; });
  net->data(0, 0);
  EXPECT_EQ(net->sw(0).imbalance(), "");
  net->ack(1, -5);  // stale
  EXPECT_THAT(net->sw(0).imbalance(), HasSubstr("frames received, and their fates"));
}

TEST(Balance, IsLostByAFrameWithTwoFatesAHeldOneAndACopyWithout) {
  struct Book {
    std::vector<Counter> balanced, more;
    const char* names;
  };
  using enum Counter;
  for (const Book& book : {Book{{kRxPackets, kDropTtl}, {kDropNoRoute}, "1 against 2"},
                           Book{{}, {kRxPackets, kGateHeld}, "frames held"},
                           Book{{kMrpSent, kDropTooLong}, {kMrpSent}, "copies made"}}) {
    Counters counters;
    for (const Counter c : book.balanced) counters.add({}, c);
    EXPECT_EQ(counters.imbalance(0), "");
    for (const Counter c : book.more) counters.add({}, c);
    EXPECT_THAT(counters.imbalance(0), HasSubstr(book.names));
  }
}

TEST(Balance, HoldsForFramesThatLeaveTheGateWithTheirSource) {
  auto net = make_star_amid(4, 0);
  net->data(1, 0);
  net->data(1, 1);
  net->control(0, MrpType::kEvict, 1, {net->member(1)});
  EXPECT_EQ(net->count(Counter::kGateEmptied), 2u);
  EXPECT_EQ(net->count(Counter::kGateLetThrough), 0u);
}

TEST(Balance, HoldsForFramesThatTheGateLetsThrough) {
  auto net = make_star_amid(3, 0);
  net->data(1, 0);
  net->ack({1, 2}, 0);
  EXPECT_EQ(net->count(Counter::kGateLetThrough), 1u);
  EXPECT_EQ(net->count(Counter::kDataTaken), 2u);
}

// By a trunk without members, under any name: it was received once.
TEST(Balance, HoldsForConfirmationsOfSeveralStrangers) {
  auto net = make_pair_of_switches();
  const std::vector<wire::MrpMember> strangers{{Ipv4(10, 9, 9, 8), Qpn(5)},
                                               {Ipv4(10, 9, 9, 9), Qpn(5)}};
  const auto step = static_cast<std::uint16_t>(MrpType::kActivate);
  net->inject_at(
      1, net->port_between(1, 0),
      TestNetwork::control_bytes(2, MrpType::kConfirm, 1, strangers, 1, 0, 1, nullptr, step));
  EXPECT_EQ(net->count(Counter::kDropNotMember, 1), 1u);
}

TEST(Balance, HoldsForCopiesThatCanNotBeSent) {
  auto net = make_pair_of_switches();
  net->sw(0).set_mtu(net->port_between(0, 1), 100);
  auto headers = net->headers_from(0, wire::Opcode::kRcSendOnly, 0);
  net->inject(0, net->make_frame(0, headers, 256));
  EXPECT_EQ(net->count(Counter::kDropTooLong), 1u);
  headers = net->headers_from(0, wire::Opcode::kRcSendOnly, 1);
  headers.ip.ttl = 1;
  net->inject(0, net->make_frame(0, headers));
  EXPECT_EQ(net->count(Counter::kDropCopyTtl), 1u);
  EXPECT_EQ(net->count(Counter::kDataCopies), 4u);
}

}  // namespace
}  // namespace cepheus::fabric
