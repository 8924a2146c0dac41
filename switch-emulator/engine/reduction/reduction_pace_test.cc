// How a reduction group heeds congestion and lossless links.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/pfc.h"
#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/reduction/reduction_group.h"
#include "switch-emulator/engine/reduction/test_members.h"
#include "wire/ecn.h"
#include "wire/reduction.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

constexpr auto kMarked = static_cast<std::uint8_t>(wire::Ecn::kExperienced);

TEST(ReductionMarks, OnAContributionSlowItsMember) {
  auto net = make_star(2, false);
  TestMembers members(*net, 2, 8, 8);
  net->tos = kMarked;
  members.contribute(0);
  EXPECT_EQ(net->inbox(0), Texts({"cnp"}));
  members.contribute(0);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"})) << "one in 50 us";
  net->advance(50us);
  members.contribute(0);
  EXPECT_EQ(net->inbox(0), Texts({"cnp"}));
  net->tos = 0;
  net->advance(50us);
  members.contribute(0);
  EXPECT_EQ(net->inbox(0), Texts({"ack 3"}));
}

TEST(ReductionMarks, OnResultsSlowTheContributionsOfTheirMember) {
  auto net = make_star(2, false);
  TestMembers members(*net, 2, 8, 8);
  net->cnp(1);
  EXPECT_EQ(net->inbox(1), Texts({"cnp"}));
  net->advance(50us);
  net->echo(1, -1);
  EXPECT_EQ(net->inbox(1), Texts({"cnp"})) << "a mark that its device echoes in an acknowledgement";
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->count(Counter::kReductionCnp), 2u);
}

// Two switches with two members each. The packets of unit 0 between them are kept.
class ReductionMarksOnTrunks : public testing::Test {
 protected:
  ReductionMarksOnTrunks() {
    net_->on_trunk = [this](std::size_t from, std::size_t, const wire::RoceHeaders& h) {
      if (h.bth.opcode == wire::Opcode::kRcSendOnlyImm) (from == 0 ? result_ : partial_) = h;
    };
    for (const std::size_t m : {0, 3, 1, 2}) members_.contribute(m);
    net_->advance(1ms);
    net_->clear();
  }
  void inject(const wire::RoceHeaders& h, std::size_t at) {
    std::array<std::uint8_t, 256> bytes;
    const std::size_t size = net_->make_frame(0, h).to_bytes(bytes);
    net_->inject_at(at, net_->port_between(at, 1 - at), {bytes.begin(), bytes.begin() + size});
  }
  void expect_that_the_last_is_slowed() {
    EXPECT_EQ(net_->inbox(2), Texts({"cnp"}));
    for (const std::size_t other : {0, 1, 3}) EXPECT_EQ(net_->inbox(other), Texts()) << other;
  }

  std::unique_ptr<TestNetwork> net_ = make_pair_of_switches(false);
  TestMembers members_{*net_, 4, 8, 0};
  wire::RoceHeaders partial_, result_;
};

TEST_F(ReductionMarksOnTrunks, OfAPartialResultSlowTheLastToContribute) {
  partial_.ip.tos = kMarked;
  inject(partial_, 0);
  expect_that_the_last_is_slowed();
}

TEST_F(ReductionMarksOnTrunks, OfAResultSlowTheLastToContribute) {
  result_.ip.tos = kMarked;
  inject(result_, 1);
  expect_that_the_last_is_slowed();
}

// By a space's first letter, in the order of sending.
std::string spaces_of(const SwitchOutput& out) {
  std::string spaces;
  for (const Emit& emit : out.emits) {
    spaces += emit.space == Space::kOwn ? 'o' : emit.space == Space::kNone ? 'n' : 'i';
  }
  return spaces;
}

TEST(ReductionSpace, IsTheGroupsOwnForTheFirstPacketOfAUnit) {
  auto net = make_star(2, false);
  TestMembers members(*net, 2, 8, 0);
  members.contribute(0);
  SwitchOutput out;
  const auto take = [&](std::size_t host, wire::RoceHeaders h) {
    out.clear();
    h.imm.value = wire::ReductionImm{0, 0, 1, 0}.value();
    net->sw(0).on_packet(net->now(), net->port_of(host), net->make_frame(host, h), out);
    return spaces_of(out);
  };
  auto contribution = net->headers_from(1, wire::Opcode::kRcSendOnlyImm, 0);
  EXPECT_EQ(take(1, contribution), "oooo") << "an acknowledgement and a result for each";
  contribution.ip.tos = kMarked;
  EXPECT_EQ(take(1, contribution), "nn") << "a notification, and an acknowledgement";
  auto nak = net->headers_from(0, wire::Opcode::kRcAcknowledge, 0);
  nak.aeth = wire::Aeth::nak(wire::NakCode::kSequenceError);
  EXPECT_EQ(take(0, nak), "n") << "the result again: the first one may still wait";
  EXPECT_EQ(out.emits[0].worth, Worth::kRepeat) << "or it would pay for the host's own flood";
  EXPECT_EQ(out.emits[0].origin, PortId()) << "no host has caused it";
}

// The port's MTU has become smaller than a unit.
TEST(ReductionSpace, OfARepeatThatDoesNotFitChangesNoOtherPacket) {
  auto net = make_star(2, false);
  TestMembers members(*net, 2, 8, 1024);
  for (const std::size_t m : {0, 1}) members.contribute(m);
  net->sw(0).set_mtu(net->port_of(0), 200);
  auto nak = net->headers_from(0, wire::Opcode::kRcAcknowledge, 0);
  nak.aeth = wire::Aeth::nak(wire::NakCode::kSequenceError);
  nak.ip.tos = kMarked;
  SwitchOutput out;
  net->sw(0).on_packet(net->now(), net->port_of(0), net->make_frame(0, nak), out);
  ASSERT_EQ(net->count(Counter::kDropTooLong), 1u);
  EXPECT_EQ(net->text(out.emits.at(0).frame), "cnp");
  EXPECT_EQ(out.emits[0].origin, net->port_of(0)) << "it answers the host's packet";
}

TEST(ReductionSpace, IsNotFilledByRepeatsWhileALosslessLinkIsPaused) {
  auto net = make_star(2, false);
  TestMembers members(*net, 2, 8, 0);
  net::PauseState pause;
  net->sw(0).watch(net->port_of(0), pause);
  pause.pause(net->now(), net->now() + 1s);
  for (const std::size_t m : {0, 1}) members.contribute(m);
  members.receive(1);
  net->clear();
  net->advance(1s + ReductionGroup::kLongestSilence - 1us);
  EXPECT_EQ(net->inbox(0), Texts());
  net->advance(1s);
  EXPECT_FALSE(net->inbox(0).empty());
}

// A full ring pauses its link, and nobody knows for how long.
TEST(ReductionSpace, IsNotFilledByRepeatsDuringAPauseWithoutAKnownEnd) {
  auto net = make_star(2, false);
  TestMembers members(*net, 2, 8, 0);
  net::PauseState pause;
  net->sw(0).watch(net->port_of(0), pause);
  pause.pause(net->now(), wire::kNever);
  for (const std::size_t m : {0, 1}) members.contribute(m);
  members.receive(1);
  net->clear();
  net->advance(2s);
  EXPECT_EQ(net->inbox(0), Texts());
  pause.pause(net->now(), net->now());
  net->advance(Call::kPauseAhead + ReductionGroup::kLongestSilence);
  EXPECT_FALSE(net->inbox(0).empty());
}

// A reload may change it while groups are active.
TEST(ReductionPace, FollowsAChangedFeedbackWait) {
  auto net = make_star(2, false);
  TestMembers members(*net, 2, 8, 0);
  for (const std::size_t m : {0, 1}) members.contribute(m);
  members.receive_all();  // the round trip is known
  for (const std::size_t m : {0, 1}) members.contribute(m);
  members.receive(1);
  net->config(0).feedback_wait = 700ms;
  net->sw(0).take_settings(net->config(0));
  net->clear();
  net->advance(400ms);
  EXPECT_EQ(net->inbox(0), Texts());
  net->advance(400ms);
  EXPECT_EQ(net->inbox(0), Texts({"data 1"}));
}

// Acknowledgements of a switch are late by up to 1 ms, however long its neighbours wait.
TEST(ReductionPace, WaitsLongerForASwitch) {
  auto net = make_pair_of_switches(false, [](SwitchConfig& c) { c.feedback_wait = 50ms; });
  TestMembers members(*net, 4, 8, 0);
  for (const std::size_t m : {0, 1, 2, 3}) members.contribute(m);
  members.receive_all();
  net->advance(1ms);
  std::size_t partials = 0;
  net->lose = [&](std::size_t from, std::size_t, const std::string& text) {
    if (from == 1 && text == "data 1") ++partials;
    return true;
  };
  for (const std::size_t m : {2, 3}) members.contribute(m);
  net->advance(50ms + 500us);
  EXPECT_EQ(partials, 1u);
  net->advance(10ms);
  EXPECT_EQ(partials, 2u);
}

}  // namespace
}  // namespace cepheus::fabric
