// One sender and its receivers over a network that loses, doubles and reorders. The sender is
// active only once every receiver has answered, no queue pair is connected twice, and every step
// ends.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "controller/test_sender_network.h"

namespace cepheus::mrp {
namespace {

using namespace test;
using SenderState = SenderRegistration::State;
using To = SenderNetwork::To;

struct SenderFaults {
  SenderNetworkShape shape;
  int loss_percent, double_percent, reorder_percent;
  Ipv4 unplugged;  // a receiver that nothing reaches
};

class SenderChaos {
 public:
  SenderChaos(const SenderFaults& faults, std::uint64_t seed)
      : faults_(faults), random_(seed), net_(faults.shape) {}

  SenderNetwork& net() { return net_; }

  // Random delivery while `calm` is false; then perfect until nothing happens any more.
  void run(Instant until, bool calm) {
    for (unsigned steps = 0;; ++steps) {
      RC_ASSERT(steps < 200'000u);  // livelock
      if (!net_.under_way.empty()) {
        const std::size_t at =
            !calm && chance(faults_.reorder_percent) ? pick(net_.under_way.size()) : 0;
        const auto d = net_.under_way[at];
        const bool twice = !calm && chance(faults_.double_percent);
        if (!twice) net_.under_way.erase(net_.under_way.begin() + static_cast<std::ptrdiff_t>(at));
        const bool lost = !calm && chance(faults_.loss_percent);
        if (!lost && !(d.to == To::kReceiver && d.host == faults_.unplugged)) net_.deliver(d);
        if (!calm && chance(20) && net_.now < until) advance(until);
      } else if (net_.sender.deadline() <= until) {
        net_.now = std::max(net_.now, net_.sender.deadline());
        net_.tick();
      } else {
        net_.now = until;
        return;
      }
      check();
    }
  }
  std::size_t pick(std::size_t n) {
    random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::size_t>((random_ >> 33) % n);
  }

 private:
  void advance(Instant until) {
    net_.now = std::min(until, net_.now + 1ms);
    if (net_.sender.deadline() <= net_.now) net_.tick();
  }
  // The invariants after every step.
  void check() {
    for (const auto& [address, calls] : net_.connect_calls) RC_ASSERT(calls == 1);
    if (net_.sender.state() != SenderState::kActive) return;
    for (const MrpMember& each : net_.sender.receivers()) {
      RC_ASSERT(net_.receivers.at(each.host).is_connected());
      RC_ASSERT(net_.answered_epoch[each.host] == net_.sender.epoch());
    }
  }
  bool chance(int percent) { return static_cast<int>(pick(100)) < percent; }

  SenderFaults faults_;
  std::uint64_t random_;
  SenderNetwork net_;
};

SenderFaults any_sender_faults() {
  SenderFaults f{};
  f.shape.receivers = *rc::gen::inRange<std::uint32_t>(1, 17);
  f.shape.racks = *rc::gen::inRange<std::uint32_t>(1, 5);
  f.shape.spines = *rc::gen::inRange<std::uint32_t>(1, 5);
  f.loss_percent = *rc::gen::inRange(0, 30);
  f.double_percent = *rc::gen::inRange(0, 30);
  f.reorder_percent = *rc::gen::inRange(0, 50);
  return f;
}

TEST(SenderRegistrationProperty, IsActiveWithAllOrFailsWithNobodyStrandedAfterwards) {
  EXPECT_TRUE(rc::check([] {
    SenderFaults f = any_sender_faults();
    if (*rc::gen::inRange(0, 3) == 0) {
      f.unplugged = host(*rc::gen::inRange<std::uint32_t>(1, f.shape.receivers + 1));
    }
    SenderChaos chaos(f, *rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(chaos.net().start().has_value());
    chaos.run(kStart + 500ms, false);
    chaos.run(kStart + 3s, true);
    const auto& sender = chaos.net().sender;
    RC_CLASSIFY(sender.state() == SenderState::kActive);
    if (f.unplugged == Ipv4()) {
      RC_ASSERT(sender.state() == SenderState::kActive);
      for (const auto& [address, receiver] : chaos.net().receivers) {
        RC_ASSERT(receiver.state() == ReceiverMembership::State::kActive);
      }
      return;
    }
    RC_ASSERT(sender.state() == SenderState::kFailed);
    RC_ASSERT(!sender.error().text.empty());
    RC_ASSERT(sender.deadline() == wire::kNever);
    for (const auto& [address, receiver] : chaos.net().receivers) {
      RC_ASSERT(address == f.unplugged || receiver.state() == ReceiverMembership::State::kFailed);
    }
  }));
}

TEST(SenderRegistrationProperty, GoesOnWithThoseThatAreLeftWhoeverIsGone) {
  EXPECT_TRUE(rc::check([] {
    SenderFaults f = any_sender_faults();
    f.shape.receivers = *rc::gen::inRange<std::uint32_t>(3, 17);
    SenderChaos chaos(f, *rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(chaos.net().start().has_value());
    chaos.run(kStart + 500ms, true);
    const std::uint32_t gone = 1 + static_cast<std::uint32_t>(chaos.pick(f.shape.receivers));
    const std::uint32_t other = 1 + gone % f.shape.receivers;
    chaos.net().report(gone, wire::kMemberDown);
    chaos.run(kStart + 520ms, true);
    chaos.run(kStart + 1s, false);
    chaos.net().report(other, wire::kMemberDown);
    chaos.run(kStart + 2s, false);
    chaos.run(kStart + 4s, true);
    const auto& sender = chaos.net().sender;
    RC_ASSERT(sender.state() == SenderState::kActive);
    RC_ASSERT(sender.receivers().size() >= f.shape.receivers - 2u);
    for (const MrpMember& each : sender.receivers()) {
      RC_ASSERT(each.host != host(gone));
      const auto& receiver = chaos.net().receivers.at(each.host);
      RC_ASSERT(receiver.state() == ReceiverMembership::State::kActive);
      RC_ASSERT(receiver.epoch() == sender.epoch());
    }
  }));
}

TEST(SenderRegistrationProperty, RemovingAtAnyMomentEndsWithinItsRepeats) {
  EXPECT_TRUE(rc::check([] {
    const SenderFaults f = any_sender_faults();
    SenderChaos chaos(f, *rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(chaos.net().start().has_value());
    const auto moment = kStart + std::chrono::milliseconds(*rc::gen::inRange(0, 1200));
    chaos.run(moment, false);
    chaos.net().remove();
    chaos.run(chaos.net().now + 200ms, false);
    RC_ASSERT(chaos.net().sender.state() == SenderState::kGone);
  }));
}

}  // namespace
}  // namespace cepheus::mrp
