#include "switch-emulator/engine/registration/registration_messages.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

// The last datagram that a host got, as a message.
std::optional<wire::MrpMessage> message_at(const TestNetwork& net, std::size_t host) {
  const auto frame = Frame::from_bytes(net.frames(host).back());
  const auto datagram = wire::UdpDatagram::parse(*frame);
  return datagram ? wire::MrpMessage::parse(frame->payload()) : std::nullopt;
}

constexpr std::array<std::uint8_t, 12> kRecords = {0x92, 2, 1, 2, 3, 4, 5, 6, 0x93, 1, 7, 8};

wire::MrpMessage with_records(wire::MrpMessage message) {
  std::ranges::copy(kRecords, message.skipped.begin());
  message.skipped_size = kRecords.size();
  return message;
}

// Hosts 2 and 3 are behind another switch than the leader.
TEST(Split, PassesOnRecordsThatTheSwitchDoesNotKnow) {
  auto net = make_pair_of_switches(false);
  std::vector<wire::MrpMember> members;
  for (std::size_t host = 0; host < 4; ++host) members.push_back(net->member(host));
  net->send_message(0, with_records(TestNetwork::message_about(wire::MrpType::kRegister, members)));
  for (const std::size_t host : {1, 2, 3}) {
    ASSERT_EQ(net->frames(host).size(), 1u) << host;
    const auto got = message_at(*net, host);
    ASSERT_TRUE(got) << host;
    ASSERT_EQ(got->member_count, 1u);
    EXPECT_EQ(got->members[0].host, TestNetwork::ip(host));
    EXPECT_TRUE(std::ranges::equal(got->skipped_records(), kRecords)) << host;
  }
}

// The leader compares what its members confirm. Its own switch names no method to others.
TEST(Split, NamesTheMethodOfEachMembersOwnSwitch) {
  constexpr std::uint16_t kFlag = wire::MrpHeader::kHostSync, kOther = wire::MrpHeader::kLossEnds;
  for (const std::string with_sync : {"s0", "s1"}) {
    auto net = make_pair_of_switches(false, [&](SwitchConfig& c) {
      if (c.name == with_sync) c.rules.source_change = net::SourceChange::kHostSync;
    });
    for (const std::uint16_t sent : {std::uint16_t{0}, kFlag}) {
      net->register_group(0, 1, {}, sent | kOther);
      for (const std::size_t host : {1, 2, 3}) {
        const bool has_sync = with_sync == (host < 2 ? "s0" : "s1");
        EXPECT_EQ(message_at(*net, host)->header.flags, (has_sync ? kFlag : 0) | kOther) << host;
      }
    }
  }
}

TEST(WithoutMembers, PassesOnRecordsThatTheSwitchDoesNotKnow) {
  auto net = make_pair_of_switches(false);
  net->register_group(0, 1);
  net->clear();
  auto message = TestNetwork::message_about(wire::MrpType::kActivate, {});
  message.header.flags = 3;  // members beside the leader
  net->send_message(0, with_records(message));
  for (const std::size_t host : {1, 2, 3}) {
    ASSERT_FALSE(net->frames(host).empty()) << host;
    const auto got = message_at(*net, host);
    ASSERT_TRUE(got) << host;
    EXPECT_EQ(got->header.type, wire::MrpType::kActivate);
    EXPECT_TRUE(std::ranges::equal(got->skipped_records(), kRecords)) << host;
  }
}

}  // namespace
}  // namespace cepheus::fabric
