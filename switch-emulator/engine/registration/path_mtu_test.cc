// The path MTU of a group: the least of its members and of its ports, and packets that are too long
// later.
#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using wire::MrpPath;
using wire::MrpType;

// All messages of that type that a host got.
std::vector<wire::MrpMessage> messages_at(const TestNetwork& net, std::size_t host, MrpType type) {
  std::vector<wire::MrpMessage> all;
  for (const auto& bytes : net.frames(host)) {
    const auto frame = Frame::from_bytes(bytes);
    const auto message = wire::MrpMessage::parse(frame->payload());
    if (message && message->header.type == type) all.push_back(*message);
  }
  return all;
}

void confirm_with_mtu(TestNetwork& net, std::size_t host, std::uint16_t mtu) {
  wire::MrpMessage message = TestNetwork::message_about(MrpType::kConfirm, {net.member(host)});
  message.header.flags = static_cast<std::uint16_t>(MrpType::kRegister);
  message.path = MrpPath{mtu, 0};
  net.send_message(host, message);
}

// CONNECT of all members but the leader.
wire::MrpMessage connect_with(MrpPath path, std::uint16_t others,
                              const std::vector<wire::MrpMember>& named = {}) {
  wire::MrpMessage message = TestNetwork::message_about(MrpType::kConnect, named);
  message.header.flags = others;
  message.path = path;
  return message;
}

// What the leader, host 0, learns once hosts 1 to 3 have confirmed with these path MTUs.
std::uint16_t least_of(TestNetwork& net, std::array<std::uint16_t, 3> mtus) {
  net.register_group(0, 1);
  for (const std::size_t host : {1, 2, 3}) confirm_with_mtu(net, host, mtus[host - 1]);
  std::uint16_t least = 0xFFFF;
  for (const auto& confirm : messages_at(net, 0, MrpType::kConfirm)) {
    least = std::min(least, confirm.path.value_or(MrpPath()).mtu);
  }
  return least;
}

TEST(PathMtu, IsTheLeastOfHostsAndPorts) {
  EXPECT_EQ(least_of(*make_pair_of_switches(false), {4096, 4096, 4096}), 4096);
  EXPECT_EQ(least_of(*make_pair_of_switches(false), {4096, 4096, 512}), 512);
  EXPECT_EQ(least_of(*make_pair_of_switches(false), {2048, 4096, 4096}), 2048);
  const auto narrow = [](const char* name, std::size_t port) {
    return make_pair_of_switches(false, [=](SwitchConfig& config) {
      if (config.name == name) config.ports[port].mtu = kUsualFrame;
    });
  };
  EXPECT_EQ(least_of(*narrow("s1", 1), {4096, 4096, 4096}), 1024) << "a port behind the trunk";
  EXPECT_EQ(least_of(*narrow("s0", 0), {4096, 4096, 4096}), 1024) << "the leader's port";
  EXPECT_EQ(least_of(*narrow("s0", 2), {4096, 4096, 4096}), 1024) << "the trunk";
}

// 0 in PATH would mean that no limit is known.
TEST(PathMtu, OfAPortThatNoPacketFitsThroughIsRefused) {
  auto net = make_star(3, false, [](SwitchConfig& c) { c.ports[2].mtu = 300; });
  net->register_group(0, 1);
  const auto rejects = messages_at(*net, 0, MrpType::kReject);
  ASSERT_EQ(rejects.size(), 1u);
  EXPECT_EQ(rejects[0].header.flags, static_cast<std::uint16_t>(wire::MrpReject::kTooLong));
  EXPECT_EQ(rejects[0].members[0].host, TestNetwork::ip(2));
}

TEST(PathMtu, GoesToAllMembersWithConnect) {
  auto net = make_pair_of_switches(false);
  net->register_group(0, 1);
  for (const std::size_t host : {1, 2, 3}) net->confirm(host, MrpType::kRegister);
  net->clear();
  const wire::MrpMessage connect = connect_with({1024, 0}, 3);
  net->send_message(0, connect);
  for (const std::size_t host : {1, 2, 3}) {
    const auto got = messages_at(*net, host, MrpType::kConnect);
    ASSERT_EQ(got.size(), 1u) << host;
    EXPECT_EQ(got[0].path, (MrpPath{1024, 0}));
    EXPECT_EQ(got[0].member_count, 0u);
  }
  for (const std::size_t host : {1, 2}) net->confirm(host, MrpType::kConnect);
  net->clear();
  net->send_message(0, connect_with({1024, 0}, 3, {net->member(3)}));
  EXPECT_TRUE(messages_at(*net, 2, MrpType::kConnect).empty()) << "it has confirmed";
  EXPECT_EQ(messages_at(*net, 3, MrpType::kConnect).size(), 1u);
  net->clear();
  net->register_group(0, 1);  // a late copy
  EXPECT_TRUE(messages_at(*net, 1, MrpType::kRegister).empty());
  net->confirm(3, MrpType::kConnect);
  net->control(0, MrpType::kActivate, 1);
  net->data(0, 0);
  EXPECT_EQ(net->inbox(3).back(), "data 0");
  net->send_message(0, connect);
  EXPECT_EQ(net->count(Counter::kDropMrpStale), 2u) << "data flows";
  EXPECT_EQ(net->view().path_mtu, 1024u);
}

// The switch has restarted, and all members had confirmed REGISTER: nobody names them again.
TEST(Connect, IsRefusedByASwitchThatHasForgottenTheGroup) {
  auto net = make_pair_of_switches(false);
  net->control(0, MrpType::kConnect, 1);
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 members are missing in the table"}));
  net->register_group(0, 1);
  net->control(0, MrpType::kUnregister, 1);
  net->clear();
  net->control(0, MrpType::kConnect, 1);
  EXPECT_EQ(net->inbox(0), Texts()) << "its leader has ended it";
}

TEST(PathMtu, IsShownWithThePortOrTheDeviceThatLimitsIt) {
  const auto limit_at = [](std::uint16_t leaders, std::uint16_t others, std::uint32_t frame) {
    auto net = make_star(3, false, [=](SwitchConfig& c) { c.ports[2].mtu = frame; });
    net->register_group(0, 1);
    confirm_with_mtu(*net, 1, others);
    confirm_with_mtu(*net, 2, 4096);
    MrpPath path = *messages_at(*net, 0, MrpType::kConfirm).back().path;
    path.narrow({leaders, 0});
    net->send_message(0, connect_with(path, 2));
    return net->view().mtu_limit;
  };
  constexpr std::uint32_t kLongFrame = 4224;
  EXPECT_EQ(limit_at(4096, 4096, kLongFrame), "");
  EXPECT_EQ(limit_at(4096, 4096, kUsualFrame), "port h2");
  EXPECT_EQ(limit_at(4096, 1024, kLongFrame), "device of h1");
  EXPECT_EQ(limit_at(1024, 4096, kLongFrame), "device of h0");
}

TEST(PathMtu, OfAPortThatFallsIsReportedToTheLeaderOnce) {
  auto net = make_pair_of_switches(true);
  const auto send = [&](std::int64_t psn) {
    const auto headers = net->headers_from(1, wire::Opcode::kRcSendOnly, psn);
    net->inject(1, net->make_frame(1, headers, 2048));
  };
  net->sw(1).set_mtu(net->port_of(3), kUsualFrame);
  for (const std::int64_t psn : {0, 1, 2}) send(psn);
  EXPECT_EQ(net->count(Counter::kDropTooLong, 1), 3u);
  auto rejects = messages_at(*net, 0, MrpType::kReject);
  ASSERT_EQ(rejects.size(), 1u);
  EXPECT_EQ(rejects[0].header.flags, static_cast<std::uint16_t>(wire::MrpReject::kTooLong));
  ASSERT_EQ(rejects[0].member_count, 1u);
  EXPECT_EQ(rejects[0].members[0].host, TestNetwork::ip(3));
  EXPECT_EQ(rejects[0].path, (MrpPath{1024, 0}));
  net->advance(300ms);
  send(0);
  rejects = messages_at(*net, 0, MrpType::kReject);
  EXPECT_EQ(rejects.size(), 2u) << "the first may have been lost";
}

// The gate lets it through in the same call.
TEST(PathMtu, OfAPortThatAnEvictionSendsPacketsByIsReportedToTheLeader) {
  auto net = make_star_amid(5, 1);
  net->ack({1, 2, 4}, 1);
  net->data(1, 0);
  net->sw(0).set_mtu(net->port_of(4), 100);
  net->clear();
  net->control(0, MrpType::kEvict, 1, {net->member(3)});
  EXPECT_EQ(net->count(Counter::kDropTooLong), 1u);
  const auto rejects = messages_at(*net, 0, MrpType::kReject);
  ASSERT_EQ(rejects.size(), 1u);
  EXPECT_EQ(rejects[0].members[0].host, TestNetwork::ip(4));
  EXPECT_FALSE(rejects[0].path) << "no packet fits";
}

}  // namespace
}  // namespace cepheus::fabric
