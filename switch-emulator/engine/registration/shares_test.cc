// What a group's ways can take, as switches send it to the leader and to members.
#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using wire::MrpPath;
using wire::MrpType;

constexpr std::uint32_t kFrames = 64;  // of each host's queue

// PATH of the last message of that type that a host got.
std::optional<MrpPath> path_at(const TestNetwork& net, std::size_t host, MrpType type) {
  std::optional<MrpPath> last;
  for (const auto& bytes : net.frames(host)) {
    const auto frame = Frame::from_bytes(bytes);
    const auto message = wire::MrpMessage::parse(frame->payload());
    if (message && message->header.type == type) last = message->path;
  }
  return last;
}

std::uint32_t window_at(const TestNetwork& net, std::size_t host, MrpType type) {
  return path_at(net, host, type).value_or(MrpPath()).window;
}

void limit_hosts(SwitchConfig& config) {
  for (PortConfig& port : config.ports) {
    if (port.kind == PortKind::kHost) port.queue_frames = kFrames;
  }
}

// The leader sends REFRESH with that number, as it does when a REPORT has changed it.
void refresh(TestNetwork& net, std::uint32_t window) {
  wire::MrpMessage message = TestNetwork::message_about(MrpType::kRefresh, {});
  message.path = MrpPath{0, window};
  net.send_message(0, message);
}

TEST(Shares, AreSentWithTheConfirmOfTheSmallestQueueOnTheWay) {
  auto net = make_pair_of_switches(false, [](SwitchConfig& config) {
    limit_hosts(config);
    if (config.name == "s1") config.ports.back().queue_frames = 40;
  });
  net->register_group(0, 1);
  for (const std::size_t host : {1, 2, 3}) net->confirm(host, MrpType::kRegister);
  EXPECT_EQ(window_at(*net, 0, MrpType::kConfirm), 40u / 2) << "a part stays free";
}

TEST(Shares, AreShownWithThePortsThatLimitThem) {
  auto net = make_star(3, true, limit_hosts);
  for (const std::size_t host : {1, 2}) net->confirm(host, MrpType::kActivate);
  net->data(0, 0);
  const GroupView view = net->view();
  EXPECT_EQ(view.window, kFrames / 2);
  for (const PathView& path : view.paths) EXPECT_EQ(path.window, kFrames / 2) << path.name;
}

TEST(Shares, AreHalfOfALongPart) {
  const auto window = [](std::uint32_t queue) {
    auto net = make_star(3, false, [queue](SwitchConfig& config) {
      for (PortConfig& port : config.ports) port.queue_frames = queue;
    });
    net->register_group(0, 1);
    for (const std::size_t host : {1, 2}) net->confirm(host, MrpType::kRegister);
    return window_at(*net, 0, MrpType::kConfirm);
  };
  EXPECT_EQ(window(250), 125u);
  EXPECT_EQ(window(400), 128u);
  EXPECT_EQ(window(1000), 250u);
}

TEST(Shares, AreNoneWithoutAQueueThatDrops) {
  auto net = make_star(3, false);
  net->register_group(0, 1);
  for (const std::size_t host : {1, 2}) net->confirm(host, MrpType::kRegister);
  EXPECT_EQ(window_at(*net, 0, MrpType::kConfirm), 0u);
}

TEST(Shares, GoOnToMembersByRefreshAndAreRepeatedToTheLeader) {
  auto net = make_pair_of_switches(true, limit_hosts);
  refresh(*net, 7);
  for (const std::size_t host : {1, 2, 3}) EXPECT_EQ(window_at(*net, host, MrpType::kRefresh), 7u);
  EXPECT_EQ(window_at(*net, 0, MrpType::kReport), kFrames / 2);
}

constexpr McstId kOther{198, 18, 0, 8};

wire::MrpMessage about_other(MrpType type, const std::vector<wire::MrpMember>& members,
                             std::uint16_t flags = 0) {
  wire::MrpMessage message = TestNetwork::message_about(type, members);
  message.header.mcst_id = kOther;
  message.header.flags = flags;
  return message;
}

// A second group of all three hosts of a star.
void set_up_other(TestNetwork& net) {
  net.send_message(0,
                   about_other(MrpType::kRegister, {net.member(0), net.member(1), net.member(2)}));
  for (const std::size_t host : {1, 2}) {
    net.send_message(host, about_other(MrpType::kConfirm, {net.member(host)},
                                       static_cast<std::uint16_t>(MrpType::kRegister)));
  }
  net.send_message(0, about_other(MrpType::kActivate, {}, 2));
}

void data_of_other(TestNetwork& net) {
  wire::RoceHeaders headers = net.headers_from(0, wire::Opcode::kRcSendOnly, 0);
  headers.ip.destination = kOther;
  headers.bth.psn = wire::group_start_psn(kOther, 1);
  net.inject(0, net.make_frame(0, headers, 8));
}

TEST(Shares, AreDividedAmongTheGroupsInUse) {
  auto net = make_star(3, true, limit_hosts);
  for (const std::size_t host : {1, 2}) net->confirm(host, MrpType::kActivate);
  set_up_other(*net);
  net->data(0, 0);
  EXPECT_EQ(path_at(*net, 0, MrpType::kReport), std::nullopt) << "the other group is idle";
  data_of_other(*net);
  EXPECT_EQ(window_at(*net, 0, MrpType::kReport), kFrames / 4);
  EXPECT_EQ(net->count(Counter::kMrpReport), 2u) << "of both groups";
  net->clear();
  net->advance(1500ms);
  net->data(0, 1);
  EXPECT_EQ(window_at(*net, 0, MrpType::kReport), kFrames / 2) << "the other group is idle again";
}

// A ring of an emulated host.
TEST(Shares, OfARingAreTheSameForAllGroups) {
  auto net = make_star(3, true, [](SwitchConfig& config) {
    for (PortConfig& port : config.ports) port.ring_window = kFrames;
  });
  for (const std::size_t host : {1, 2}) net->confirm(host, MrpType::kActivate);
  EXPECT_EQ(window_at(*net, 0, MrpType::kConfirm), kFrames);
  for (const PathView& path : net->view().paths) EXPECT_EQ(path.window, kFrames) << path.name;
  set_up_other(*net);
  net->data(0, 0);
  data_of_other(*net);
  EXPECT_EQ(net->count(Counter::kMrpReport), 0u) << "no change";
}

// Each eighth packet is lost on its way to host 1, until packet 200.
void lose_packets(TestNetwork& net) {
  for (std::int64_t psn = 0; psn < 200; ++psn) {
    net.data(0, psn);
    if (psn % 8 == 0) {
      net.ack(2, psn);
      net.nak(1, psn);
      net.data(0, psn);
    }
    net.ack({1, 2}, psn);
  }
}

TEST(Shares, ShrinkWhilePacketsAreLostAndGrowAgain) {
  auto net = make_star(3, true, limit_hosts);
  lose_packets(*net);
  EXPECT_EQ(window_at(*net, 0, MrpType::kReport), 16u);
  for (std::int64_t psn = 200; psn < 1000; ++psn) {
    net->data(0, psn);
    net->ack({1, 2}, psn);
  }
  EXPECT_EQ(window_at(*net, 0, MrpType::kReport), kFrames / 2);
}

TEST(Shares, StayAlthoughPacketsAreLostWithTheRuleOff) {
  auto net = make_star(3, true, [](SwitchConfig& config) {
    limit_hosts(config);
    config.rules.window_after_loss = false;
  });
  lose_packets(*net);
  EXPECT_EQ(window_at(*net, 0, MrpType::kReport), kFrames / 2);
}

TEST(Shares, AreNoneWithTheRuleOff) {
  auto net = make_star(3, false, [](SwitchConfig& config) {
    limit_hosts(config);
    config.rules.announced_window = false;
  });
  net->register_group(0, 1);
  for (const std::size_t host : {1, 2}) net->confirm(host, MrpType::kRegister);
  EXPECT_EQ(window_at(*net, 0, MrpType::kConfirm), 0u);
}

TEST(Shares, OfASwitchBehindATrunkAreRepeatedAfterALostReport) {
  auto net = make_pair_of_switches(true, [](SwitchConfig& config) {
    limit_hosts(config);
    if (config.name == "s1") config.ports[0].queue_frames = 40;
  });
  net->lose = [](std::size_t from, std::size_t, const std::string&) { return from == 1; };
  refresh(*net, 1);
  EXPECT_EQ(window_at(*net, 0, MrpType::kReport), kFrames / 2)
      << "the first switch has not heard of it";
  net->lose = nullptr;
  refresh(*net, 1);
  EXPECT_EQ(window_at(*net, 0, MrpType::kReport), 40u / 2);
}

TEST(Shares, OfOtherHostsReportsAreForged) {
  auto net = make_star(3, true, limit_hosts);
  wire::MrpMessage forged = TestNetwork::message_about(MrpType::kReport, {});
  forged.path = MrpPath{0, 1};
  net->send_message(1, forged);
  EXPECT_EQ(net->count(Counter::kDropMrpForged), 1u);
  EXPECT_EQ(path_at(*net, 0, MrpType::kReport), std::nullopt);
}

}  // namespace
}  // namespace cepheus::fabric
