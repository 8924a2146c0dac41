#include "net/flow_control.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>

#include "wire/mrp.h"

namespace cepheus::net {
namespace {

using namespace std::chrono_literals;
using wire::Instant;
using wire::PortId;

// A switch that forwards each frame as one copy out of kFast, and records the steps of its flow
// control.
class Flow : public testing::Test {
 protected:
  using Control = FlowControl<int>;
  using enum Control::Arrival;
  using What = Control::Step::What;

  static constexpr PortId kOne{0}, kTwo{1}, kLossy{2}, kFast{3};
  static constexpr wire::McstId kGroup{239, 0, 0, 1}, kOtherGroup{239, 0, 0, 2};
  static constexpr wire::Duration kRepeat = 100us;
  // The ports that a group's data is copied to, by ingress port.
  struct Groups {
    std::optional<wire::McstId> group_of_data(const wire::Frame& frame) const {
      const auto headers = wire::RoceHeaders::parse(frame);
      return copies.contains(headers->ip.destination) ? std::optional(headers->ip.destination)
                                                      : std::nullopt;
    }
    void list_copies(wire::McstId group, PortId ingress, std::vector<PortId>& out) const {
      out.clear();
      const auto ports = copies.find(group);
      if (ports == copies.end()) return;
      for (const PortId port : ports->second) {
        if (port != ingress) out.push_back(port);
      }
    }
    std::map<wire::McstId, std::vector<PortId>> copies;
  };
  static wire::Frame data_for(wire::Ipv4 destination = wire::Ipv4(10, 0, 0, 1)) {
    static const std::vector<std::uint8_t> kBytes(900);
    wire::RoceHeaders headers;
    headers.bth.opcode = wire::Opcode::kRcSendOnly;
    headers.ip.destination = destination;
    wire::Frame frame;
    headers.emit(frame, kBytes.size());
    frame.set_external_payload(kBytes, wire::kNoBuffer);
    return frame;
  }
  // Two lossless ports with headroom for four frames each. Twelve more frames fit; a port may hold
  // half of the free part.
  static BufferPlan plan_of(bool group_halt) {
    const wire::Bytes frame = data_for().size();
    BufferPlan plan;
    plan.config.bytes = 20 * frame;
    plan.config.share = 0.5;
    plan.config.reserve = 0;
    plan.config.hysteresis = frame;
    plan.config.group_halt = group_halt;
    plan.headroom = {4 * frame, 4 * frame, 0, 0};
    plan.repeat = {kRepeat, kRepeat, {}, {}};
    return plan;
  }

  void build(bool group_halt) {
    control.emplace(plan_of(group_halt));
    for (const PortId port : {kOne, kTwo, kFast}) control->watch(port, egress[port]);
  }
  // Frame `number` comes in; its copy waits before a link.
  Control::Arrival put(PortId port, int number, wire::Ipv4 to = wire::Ipv4(10, 0, 0, 1)) {
    const auto arrival = control->on_frame(now, groups, port, data_for(to));
    if (arrival == kForward) wait_before(kFast);
    if (arrival == kHalt) control->halt(now, number);
    run();
    return arrival;
  }
  void wait_before(PortId out) {
    waiting.push_back(control->entry_for(out));
    control->add_copy(waiting.back());
  }
  void send_first() {
    control->on_copy_left(waiting.front());
    waiting.pop_front();
    run();
  }
  // A pause, or its end, from the neighbour behind `out`.
  void on_pause(PortId out, bool pause) {
    wire::Frame frame;
    emit_pause(frame, {}, pause);
    ASSERT_EQ(control->on_frame(now, groups, out, frame), kPause);
    egress[out].on_frame(now, frame, wire::BitRate{1'000'000'000});
    run();
  }
  void run() {
    for (auto step = control->next(now, groups); step.what != What::kNothing;
         step = control->next(now, groups)) {
      const std::string port = std::to_string(step.port.value());
      if (step.what == What::kForward) {
        done.push_back("forward " + std::to_string(control->released()) + " from " + port);
        wait_before(kFast);
      } else {
        done.push_back((step.what == What::kPause ? "pause " : "resume ") + port);
      }
    }
  }
  // Advances the time; timers fire when they are due.
  void wait(wire::Duration time) {
    for (const Instant end = now + time; control->deadline() <= end || now < end;) {
      now = std::min(control->deadline(), end);
      control->on_timer(now);
      run();
    }
  }
  std::vector<std::string> take_done() { return std::exchange(done, {}); }
  using Done = std::vector<std::string>;

  Groups groups;
  std::map<PortId, PauseState> egress;
  std::optional<Control> control;
  std::deque<Control::EntryId> waiting;
  std::vector<std::string> done;
  Instant now{1ms};
};

TEST_F(Flow, PausesANeighbourThatFillsTheBufferAndLetsItGoOn) {
  build(false);
  for (int n = 0; n < 3; ++n) EXPECT_EQ(put(kOne, n), kForward);
  EXPECT_EQ(take_done(), Done{}) << "three of four and a half";
  put(kOne, 3);
  EXPECT_EQ(take_done(), Done{"pause 0"}) << "four of four";
  for (int n = 4; n < 8; ++n) EXPECT_EQ(put(kOne, n), kForward) << "the headroom has room for it";
  EXPECT_EQ(put(kOne, 8), kBufferFull);
  EXPECT_EQ(put(kTwo, 9), kForward) << "another port has its own share";
  while (!waiting.empty()) send_first();
  EXPECT_EQ(take_done(), Done{"resume 0"});
  EXPECT_EQ(control->books().counters(kOne).pauses_sent, 1u);
  EXPECT_EQ(control->books().counters(kOne).dropped_headroom, 1u);
  EXPECT_TRUE(control->books().is_empty());
}

TEST_F(Flow, PausesANeighbourWhoseFramesHoldTooManySlots) {
  BufferPlan plan = plan_of(false);
  plan.config.bytes *= 100;
  plan.slots = 8;
  control.emplace(plan);
  for (int n = 0; n < 7; ++n) EXPECT_EQ(put(kOne, n), kForward);
  EXPECT_EQ(take_done(), Done{});
  put(kOne, 7);
  EXPECT_EQ(take_done(), Done{"pause 0"});
  EXPECT_EQ(put(kOne, 8), kForward) << "it was on the way, and has its slot";
  for (int n = 0; n < 3; ++n) send_first();
  EXPECT_EQ(take_done(), Done{}) << "six of eight";
  send_first();
  EXPECT_EQ(take_done(), Done{"resume 0"});
}

TEST_F(Flow, PausesNoNeighbourForAFrameThatIsForwardedAtOnce) {
  build(false);
  for (int n = 0; n < 100; ++n) {
    ASSERT_EQ(control->on_frame(now, groups, kOne, data_for()), kForward);
    run();
  }
  EXPECT_EQ(take_done(), Done{});
  EXPECT_TRUE(control->books().is_empty());
}

TEST_F(Flow, CountsNothingOfALossyPortAndOfOtherClasses) {
  build(false);
  for (int n = 0; n < 100; ++n) EXPECT_EQ(put(kLossy, n), kForward);
  wire::RoceHeaders headers;
  headers.bth.opcode = wire::Opcode::kCnp;
  wire::Frame notification;
  headers.emit(notification, 0);
  EXPECT_EQ(control->on_frame(now, groups, kOne, notification), kForward);
  EXPECT_TRUE(control->books().is_empty());
}

TEST_F(Flow, AnAnswerToTheIngressHoldsNothing) {
  build(false);
  ASSERT_EQ(control->on_frame(now, groups, kOne, data_for()), kForward);
  EXPECT_EQ(control->entry_for(kOne), IngressBooks::kNone);
  EXPECT_NE(control->entry_for(kTwo), IngressBooks::kNone);
}

TEST_F(Flow, RepeatsAPauseWhileItHolds) {
  build(false);
  for (int n = 0; n < 4; ++n) put(kOne, n);
  EXPECT_EQ(take_done(), Done{"pause 0"});
  EXPECT_EQ(control->deadline(), now + kRepeat);
  wait(3 * kRepeat);
  EXPECT_EQ(take_done(), (Done{"pause 0", "pause 0", "pause 0"}));
  EXPECT_EQ(control->books().counters(kOne).pauses_sent, 1u) << "repeats do not count";
  while (!waiting.empty()) send_first();
  wait(3 * kRepeat);
  EXPECT_EQ(take_done(), Done{"resume 0"});
  EXPECT_EQ(control->deadline(), wire::kNever);
}

TEST_F(Flow, RepeatsThePausesOfAllPortsThatAreDue) {
  build(false);
  for (int n = 0; n < 4; ++n) put(kOne, n);
  for (int n = 0; n < 4; ++n) put(kTwo, n);
  take_done();
  wait(kRepeat);
  EXPECT_EQ(take_done(), (Done{"pause 0", "pause 1"}));
}

TEST_F(Flow, HaltsAGroupBehindAPausedPortUntilThatGoesOn) {
  build(true);
  groups.copies[kGroup] = {kOne, kTwo, kFast};
  on_pause(kTwo, true);
  EXPECT_EQ(put(kOne, 1, kGroup), kHalt);
  EXPECT_EQ(put(kOne, 2, kGroup), kHalt);
  EXPECT_EQ(put(kOne, 3), kForward) << "a unicast passes";
  EXPECT_EQ(control->books().open_entries(), 3u);
  now += 10us;
  on_pause(kTwo, false);
  EXPECT_EQ(take_done(), (Done{"forward 1 from 0", "forward 2 from 0"}));
  EXPECT_EQ(put(kOne, 4, kGroup), kForward);
  while (!waiting.empty()) send_first();
  EXPECT_TRUE(control->books().is_empty());
  EXPECT_EQ(control->halts(kOne, now).halts, 1u);
  EXPECT_EQ(control->halts(now).time, 10us);
}

TEST_F(Flow, AGroupGoesOnWhenThePausesTimeIsUp) {
  build(true);
  groups.copies[kGroup] = {kOne, kTwo};
  on_pause(kTwo, true);
  put(kOne, 1, kGroup);
  EXPECT_EQ(control->deadline(), egress[kTwo].until());
  wait(egress[kTwo].until() - now);
  EXPECT_EQ(take_done(), Done{"forward 1 from 0"});
}

TEST_F(Flow, AGroupThatNeedsThePausedPortNoMoreGoesOn) {
  build(true);
  groups.copies[kGroup] = {kOne, kTwo, kFast};
  groups.copies[kOtherGroup] = {kOne, kTwo};
  on_pause(kTwo, true);
  put(kOne, 1, kGroup);
  put(kOne, 2, kOtherGroup);
  groups.copies[kGroup] = {kOne, kFast};
  run();
  EXPECT_EQ(take_done(), Done{}) << "the driver has not called look_again()";
  control->look_again();
  run();
  EXPECT_EQ(take_done(), Done{"forward 1 from 0"});
}

// An UNREGISTER goes to the engine, which removes the table.
TEST_F(Flow, AHaltedGroupGoesOnWhenADatagramHasEndedIt) {
  build(true);
  groups.copies[kGroup] = {kOne, kTwo};
  on_pause(kTwo, true);
  put(kOne, 1, kGroup);
  wire::UdpDatagram unregister;
  wire::Frame frame;
  unregister.emit(frame, std::vector<std::uint8_t>(8));
  ASSERT_EQ(control->on_frame(now, groups, kOne, frame), kForward);
  groups.copies.erase(kGroup);
  run();
  EXPECT_EQ(take_done(), Done{"forward 1 from 0"});
}

TEST_F(Flow, HaltedFramesPauseTheirNeighbourAsOthersDo) {
  build(true);
  groups.copies[kGroup] = {kOne, kTwo};
  on_pause(kTwo, true);
  for (int n = 0; n < 4; ++n) put(kOne, n, kGroup);
  EXPECT_EQ(take_done(), Done{"pause 0"});
  on_pause(kTwo, false);
  while (!waiting.empty()) send_first();
  EXPECT_EQ(take_done().back(), "resume 0");
  EXPECT_TRUE(control->books().is_empty());
}

TEST_F(Flow, WithoutGroupHaltDataWaitsAtThePausedPortOnly) {
  build(false);
  groups.copies[kGroup] = {kOne, kTwo, kFast};
  on_pause(kTwo, true);
  EXPECT_EQ(put(kOne, 1, kGroup), kForward);
}

// If the driver can't keep a halted frame, the frame and its entry are dropped.
TEST_F(Flow, ForgetsAFrameThatTheDriverCanNotKeep) {
  build(true);
  groups.copies[kGroup] = {kOne, kTwo};
  on_pause(kTwo, true);
  EXPECT_EQ(control->on_frame(now, groups, kOne, data_for(kGroup)), kHalt);
  run();
  EXPECT_TRUE(control->books().is_empty());
}

}  // namespace
}  // namespace cepheus::net
