#include "switch-emulator/engine/group/behaviour.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

// Its timer expires a millisecond after each packet, and after a path has left.
class Ticker final : public Behaviour {
 public:
  static inline int ticks = 0;

  void on_packet(Call& call, const GroupPacket&) override {
    call.count(Counter::kDataTaken);
    set_deadline(call.now + 1ms);
  }
  void on_timer(Call&) override {
    ++ticks;
    set_deadline(wire::kNever);
  }
  void on_round_trip(PathNo, Duration, bool) override {}
  void on_path_added() override {}
  void on_path_removed(Call& call, const Removed&) override { set_deadline(call.now + 1ms); }
  void on_port_down(PathNo) override {}
  void on_port_up(PathNo) override {}
  std::size_t held() const override { return 0; }
  void release_held(Call&) override {}
  std::uint16_t register_flags() const override { return 0; }
  Published on_publication(PathNo, const wire::Publication&) override {
    return Published::kNotServed;
  }
  HostReport report(const Call&, PathNo, bool) const override { return {}; }
  bool may_outlive(PathNo) const override { return false; }
  void show(const SwitchConfig&, GroupView&) const override {}
  TableBytes bytes() const override { return {}; }
  void list_copies(PortId, std::vector<PortId>&) const override {}
  std::size_t reserved() const override { return 100; }
  bool jump(std::uint64_t) override { return false; }
  void check_consistent(std::size_t) const override {}
};

MadeBehaviour make_ticker(const Mft&, const SwitchConfig&, const GroupRequest& request) {
  if (request.memory_left < 100) return tl::unexpected(wire::MrpReject::kNoMemory);
  if (request.reduction) return tl::unexpected(wire::MrpReject::kNotServed);
  return std::make_unique<Ticker>();
}

class BehaviourTest : public testing::Test {
 protected:
  BehaviourTest() {
    Ticker::ticks = 0;
    for (const auto type : {wire::MrpType::kRegister, wire::MrpType::kActivate}) {
      const bool activates = type == wire::MrpType::kActivate;
      send(TestNetwork::control_bytes(0, type, 1,
                                      activates ? std::span<const wire::MrpMember>() : members_, 1,
                                      0, 1, nullptr, activates ? 2 : 0));
    }
  }
  void send(const std::vector<std::uint8_t>& bytes) {
    switch_.on_packet(now_, net_->port_of(0), *Frame::from_bytes(bytes), out_);
  }
  void send_data() {
    const Frame data = net_->make_frame(0, net_->headers_from(0, wire::Opcode::kRcSendOnly, 0));
    switch_.on_packet(now_, net_->port_of(0), data, out_);
  }

  std::unique_ptr<TestNetwork> net_ = make_star(3, false);
  const std::vector<wire::MrpMember> members_{net_->member(0), net_->member(1), net_->member(2)};
  Switch switch_{net_->config(0), net_->payloads, make_ticker};
  SwitchOutput out_;
  const Instant now_ = net_->now();
};

TEST_F(BehaviourTest, HasATimerOfItsOwn) {
  const Instant idle = switch_.deadline();
  send_data();
  ASSERT_EQ(switch_.counters()[Counter::kDataTaken], 1u) << "the group is active";
  EXPECT_EQ(switch_.deadline(), now_ + 1ms);
  switch_.on_timer(now_ + 999us, out_);
  EXPECT_EQ(Ticker::ticks, 0) << "too early";
  switch_.on_timer(now_ + 1ms, out_);
  EXPECT_EQ(Ticker::ticks, 1);
  EXPECT_EQ(switch_.deadline(), idle) << "only the group's age is left";
  switch_.check_consistent();
}

TEST_F(BehaviourTest, MayRefuseAGroupForItsRegister) {
  const wire::MrpReduction reduction{wire::MrpReduction::kValues, 4096, 64};
  send(TestNetwork::control_bytes(0, wire::MrpType::kUnregister, 1, {}));
  out_.clear();
  send(TestNetwork::control_bytes(0, wire::MrpType::kRegister, 2, members_, 2, 0, 1, nullptr, 0,
                                  reduction, McstId(198, 18, 0, 8)));
  ASSERT_EQ(out_.emits.size(), 1u);
  EXPECT_EQ(net_->text(out_.emits[0].frame),
            "reject e2 a kind of group that the switch does not serve");
  EXPECT_EQ(switch_.group_count(), 0u);
  switch_.check_consistent();
}

TEST_F(BehaviourTest, IsRefusedOnceOthersHaveReservedAllMemory) {
  SwitchConfig config = net_->config(0);
  config.reduction_memory = 250;
  Switch small(config, net_->payloads, make_ticker);
  const auto register_group = [&](std::uint8_t number) {
    out_.clear();
    const auto bytes = TestNetwork::control_bytes(0, wire::MrpType::kRegister, 1, members_, 1, 0, 1,
                                                  nullptr, 0, {}, McstId(198, 18, 0, number));
    small.on_packet(now_, net_->port_of(0), *Frame::from_bytes(bytes), out_);
    small.check_consistent();
    return small.group_count();
  };
  EXPECT_EQ(register_group(1), 1u);
  EXPECT_EQ(register_group(2), 2u);
  EXPECT_EQ(register_group(3), 2u);
  EXPECT_EQ(net_->text(out_.emits.at(0).frame), "reject e1 no memory for another reduction group");
  small.on_timer(now_ + config.pending_age, out_);
  EXPECT_EQ(register_group(3), 1u) << "the others have aged";
}

TEST_F(BehaviourTest, GivesItsMemoryBackHoweverItEnds) {
  SwitchConfig config = net_->config(0);
  config.reduction_memory = 150;
  Switch small(config, net_->payloads, make_ticker);
  const auto send_to_small = [&](wire::MrpType type, std::uint16_t epoch,
                                 std::span<const wire::MrpMember> members, std::uint16_t flags,
                                 std::uint8_t number) {
    const auto bytes = TestNetwork::control_bytes(0, type, epoch, members, 1, 0, 1, nullptr, flags,
                                                  {}, McstId(198, 18, 0, number));
    small.on_packet(now_, net_->port_of(0), *Frame::from_bytes(bytes), out_);
    small.check_consistent();
    return small.group_count();
  };
  const auto register_group = [&](std::uint8_t number, std::uint16_t epoch = 1) {
    return send_to_small(wire::MrpType::kRegister, epoch, members_, 0, number);
  };
  const std::vector<wire::MrpMember> strangers{net_->member(0), {Ipv4(10, 9, 9, 9), Qpn(5)}};
  EXPECT_EQ(send_to_small(wire::MrpType::kRegister, 1, strangers, 0, 1), 0u) << "no route";
  EXPECT_EQ(register_group(2), 1u);
  EXPECT_EQ(register_group(2, 2), 1u) << "a newer epoch has replaced it";
  EXPECT_EQ(register_group(3), 1u) << "there is memory for one";
  EXPECT_EQ(send_to_small(wire::MrpType::kActivate, 2, {}, 2, 2), 1u);
  small.on_timer(now_ + config.age, out_);
  EXPECT_EQ(small.group_count(), 0u) << "it was active, and has aged";
  EXPECT_EQ(register_group(3), 1u);
}

TEST_F(BehaviourTest, ShowsPathsWithoutTurnsIfItHasNone) {
  const GroupView view = switch_.groups().at(0);
  ASSERT_EQ(view.paths.size(), 3u);
  for (const PathView& path : view.paths) {
    EXPECT_EQ(path.lag, 0u);
    EXPECT_EQ(path.turns_offset, 0u);
    EXPECT_FALSE(path.is_source || path.is_worst);
  }
  EXPECT_EQ(view.data_packets + view.data_bytes + view.copies, 0u);
}

TEST_F(BehaviourTest, MayMoveItsTimerWhenAMemberIsEvicted) {
  send(TestNetwork::control_bytes(0, wire::MrpType::kEvict, 1, std::span(members_).last(1)));
  ASSERT_EQ(switch_.counters()[Counter::kPathsEvicted], 1u);
  EXPECT_EQ(switch_.deadline(), now_ + 1ms);
  switch_.check_consistent();
}

TEST_F(BehaviourTest, TakesItsTimerWithIt) {
  send_data();
  send(TestNetwork::control_bytes(0, wire::MrpType::kUnregister, 1, {}));
  ASSERT_EQ(switch_.group_count(), 0u);
  switch_.on_timer(now_ + 1ms, out_);
  EXPECT_EQ(Ticker::ticks, 0);
}

}  // namespace
}  // namespace cepheus::fabric
