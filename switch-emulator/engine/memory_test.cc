// A switch's memory for a group depends on its ports and paths, not on the number of members (paper
// III-D), nor on its packets: a core switch with trunks only. The leader is behind the first one.
#include <gtest/gtest.h>

#include "switch-emulator/engine/group/held_frames.h"
#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using wire::MrpType;

constexpr std::size_t kTrunks = 8;

class Core {
 public:
  explicit Core(std::size_t members) : behind_(kTrunks) {
    SwitchConfig config;
    config.address = Ipv4(10, 255, 0, 100);
    config.hello = {};
    auto attachments = std::make_shared<net::Attachments>();
    for (std::uint8_t trunk = 0; trunk < kTrunks; ++trunk) {
      PortConfig port;
      port.kind = PortKind::kSwitch;
      port.peer = Ipv4(10, 255, 0, trunk);
      config.ports.push_back(port);
      config.routes.push_back({port.peer, {PortId(trunk)}});
    }
    for (std::size_t h = 0; h < members; ++h) {
      const std::size_t trunk = h == 0 ? 0 : 1 + (h - 1) % (kTrunks - 1);
      attachments->emplace(TestNetwork::ip(h), config.ports[trunk].peer);
      if (h == 0) continue;  // the leader's own switch lists only those behind this one
      list_.push_back({TestNetwork::ip(h), TestNetwork::qpn(h)});
      behind_[trunk].push_back(list_.back());
    }
    config.attachments = attachments;
    switch_ = std::make_unique<Switch>(config, payloads_);
  }

  void name_all() { send_control(0, MrpType::kRegister, list_, 0); }
  void request(MrpType step) {
    const std::size_t count = step == MrpType::kActivate ? list_.size() : 0;
    send_control(0, step, {}, static_cast<std::uint16_t>(count));
  }
  // All members confirm, those of one trunk after those of another.
  void confirm(MrpType step) {
    for (std::size_t trunk = 1; trunk < kTrunks; ++trunk) {
      send_control(trunk, MrpType::kConfirm, behind_[trunk], static_cast<std::uint16_t>(step));
    }
  }
  // Members that CONFIRMs to the leader named.
  std::size_t confirmed() { return std::exchange(confirmed_, 0); }
  Switch& engine() { return *switch_; }
  std::size_t bytes() const {
    const GroupView view = switch_->groups().at(0);
    return view.table_bytes + view.beside_bytes;
  }

 private:
  void send_control(std::size_t by, MrpType type, std::span<const wire::MrpMember> members,
                    std::uint16_t flags) {
    constexpr std::size_t kMost = wire::MrpMessage::kMaxMembers;
    const auto total =
        static_cast<std::uint16_t>(std::max<std::size_t>(1, (members.size() + kMost - 1) / kMost));
    for (std::uint16_t seq = 0; seq < total; ++seq) {
      const auto rest = members.subspan(seq * kMost);
      const auto bytes = TestNetwork::control_bytes(
          0, type, 1, rest.first(std::min(kMost, rest.size())), 1, seq, total, nullptr, flags);
      SwitchOutput out;
      switch_->on_packet(Instant(std::chrono::seconds(1)), PortId(static_cast<std::uint16_t>(by)),
                         *Frame::from_bytes(bytes), out);
      for (const Emit& emit : out.emits) {
        if (emit.port == PortId(0))
          confirmed_ += wire::MrpMessage::parse(emit.frame.payload())->member_count;
      }
    }
    switch_->check_consistent();
  }

  std::vector<wire::MrpMember> list_;
  std::vector<std::vector<wire::MrpMember>> behind_;  // by trunk
  TestPayloads payloads_;
  std::unique_ptr<Switch> switch_;
  std::size_t confirmed_ = 0;
};

// Bytes of a group when all its members have confirmed every step.
std::size_t registered_bytes(Core& core, std::size_t members) {
  core.name_all();
  core.confirm(MrpType::kRegister);
  EXPECT_EQ(core.confirmed(), members - 1);
  EXPECT_GT(core.bytes(), (members - 1) * sizeof(Ipv4)) << "names, until the next step";
  core.request(MrpType::kActivate);
  core.confirm(MrpType::kActivate);
  EXPECT_EQ(core.confirmed(), members - 1);
  EXPECT_TRUE(core.engine().groups().at(0).active);
  return core.bytes();
}

TEST(Memory, OfACoreSwitchIsTheSameForAnyNumberOfMembers) {
  Core few(64), most(65535);
  const std::size_t bytes = registered_bytes(few, 64);
  EXPECT_EQ(registered_bytes(most, 65535), bytes);
  EXPECT_LT(bytes, 3000u);
}

TEST(Memory, FollowsFromTheShapeOfAGroup) {
  Core core(64);
  const std::size_t bytes = registered_bytes(core, 64);
  const TableBytes expected =
      Switch::table_bytes({.ports = kTrunks, .paths = kTrunks, .members = 64});
  EXPECT_EQ(TableBytes::sum(expected.table) + TableBytes::sum(expected.beside), bytes);
}

TEST(Memory, OfAGroupIsTheSameWhilePacketsWaitAtItsGateAndAfterThat) {
  auto net = make_star(3);
  const auto bytes = [&net] { return net->view().table_bytes + net->view().beside_bytes; };
  const std::size_t before = bytes();
  net->data(0, 0);
  net->ack(1, 0);
  for (const int psn : {0, 1, 2}) net->data(1, psn);
  EXPECT_EQ(net->payloads.in_use(), 3u);
  EXPECT_EQ(bytes(), before);
  net->ack(2, 0);
  EXPECT_EQ(net->payloads.in_use(), 0u);
  EXPECT_EQ(bytes(), before);
}

TEST(Memory, OfHeldPacketsIsSharedAmongPorts) {
  HeldFrames frames(2);
  const auto fill = [&frames](std::uint16_t port) {
    std::vector<HeldFrames::Place> places;
    for (;;) {
      places.push_back(frames.add(Frame(), wire::RoceHeaders(), {}, PortId(port)));
      if (places.back() != HeldFrames::kNone) continue;
      places.pop_back();
      return places;
    }
  };
  const auto first = fill(0);
  EXPECT_GT(first.size(), HeldFrames::kMost / 2);
  const auto second = fill(1);
  EXPECT_GT(second.size(), HeldFrames::kMost / 8) << "one port leaves a part for others";
  EXPECT_LT(frames.used(), HeldFrames::kMost);
  for (const auto place : first) frames.remove(place);
  EXPECT_EQ(frames.used(), second.size());
  EXPECT_GT(fill(1).size(), 0u);
}

TEST(Memory, IsNotNeededToConfirmForAllAtOnceInTheEnd) {
  Core core(65535);
  registered_bytes(core, 65535);
  core.request(MrpType::kUnregister);
  EXPECT_EQ(core.engine().group_count(), 0u);
  core.confirm(MrpType::kUnregister);
  EXPECT_EQ(core.confirmed(), 65534u);
}

}  // namespace
}  // namespace cepheus::fabric
