// One leader and n members over a network that loses, doubles and reorders. No member hangs or
// stays active in a failed group, and no queue pair is connected twice.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "controller/test_network.h"

namespace cepheus::mrp {
namespace {

using namespace test;
using wire::MrpType;

struct Faults {
  std::uint32_t members;
  int loss_percent, double_percent, reorder_percent;
  int unplugged;  // a member that nothing reaches; 0: none
  bool merges;
  bool switch_refuses;
};

class Chaos {
 public:
  Chaos(const Faults& faults, std::uint64_t seed)
      : faults_(faults), random_(seed), net_(faults.members) {
    net_.merges = faults.merges;
    if (faults.unplugged > 0) net_.unplugged = host(static_cast<std::uint32_t>(faults.unplugged));
  }

  Network& net() { return net_; }

  // Random delivery while `calm` is false; then perfect until nothing happens any more.
  void run(Instant until, bool calm) {
    for (unsigned steps = 0;; ++steps) {
      RC_ASSERT(steps < 200'000u);  // livelock
      if (net_.under_way.empty() || (!calm && chance(10))) net_.merge();
      if (!net_.under_way.empty()) {
        const std::size_t at =
            !calm && chance(faults_.reorder_percent) ? pick(net_.under_way.size()) : 0;
        const auto d = net_.under_way[at];
        const bool twice = !calm && chance(faults_.double_percent);
        if (!twice) net_.under_way.erase(net_.under_way.begin() + static_cast<std::ptrdiff_t>(at));
        if (!lost(d, calm)) net_.deliver(d);
        if (!calm && chance(20) && net_.now < until) advance(until);
      } else if (net_.leader.deadline() <= until) {
        net_.now = std::max(net_.now, net_.leader.deadline());
        net_.tick();
      } else {
        net_.now = until;
        return;
      }
      check();
    }
  }

 private:
  void advance(Instant until) {
    net_.now = std::min(until, net_.now + 1ms);
    if (net_.leader.deadline() <= net_.now) net_.tick();
  }
  bool lost(const Network::Datagram& d, bool calm) {
    if (faults_.switch_refuses && d.message.header.type == MrpType::kRegister) {
      MrpMessage no = d.message;
      no.header.type = MrpType::kReject;
      no.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kTableFull);
      no.member_count = 0;
      net_.under_way.push_back({kSwitch, no});
      return true;
    }
    return !calm && chance(faults_.loss_percent);
  }
  // The invariants after every step.
  void check() {
    for (const auto& [address, calls] : net_.connect_calls) RC_ASSERT(calls == 1);
    if (net_.leader.state() == Registration::State::kActive) {
      for (const auto& [address, m] : net_.hosts) {
        RC_ASSERT(m.state() == Membership::State::kActive);
      }
    }
    for (const auto& [address, m] : net_.hosts) {
      if (m.state() == Membership::State::kActive) {
        RC_ASSERT(net_.leader.state() != Registration::State::kRegistering);
        RC_ASSERT(net_.leader.state() != Registration::State::kConnecting);
      }
    }
  }
  bool chance(int percent) { return static_cast<int>(pick(100)) < percent; }
  std::size_t pick(std::size_t n) {
    random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::size_t>((random_ >> 33) % n);
  }

  Faults faults_;
  std::uint64_t random_;
  Network net_;
};

Faults any_faults() {
  Faults f{};
  f.members = *rc::gen::inRange<std::uint32_t>(2, 40);
  f.loss_percent = *rc::gen::inRange(0, 40);
  f.double_percent = *rc::gen::inRange(0, 30);
  f.reorder_percent = *rc::gen::inRange(0, 50);
  f.merges = *rc::gen::arbitrary<bool>();
  return f;
}

TEST(RegistrationProperty, EndsActiveForAllOrFailedForTheLeaderWithNobodyStrandedAfterwards) {
  EXPECT_TRUE(rc::check([] {
    Faults f = any_faults();
    f.unplugged =
        *rc::gen::inRange(0, 3) == 0 ? *rc::gen::inRange(1, static_cast<int>(f.members)) : 0;
    f.switch_refuses = *rc::gen::inRange(0, 5) == 0;
    Chaos chaos(f, *rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(chaos.net().start().has_value());
    chaos.run(kStart + 500ms, false);
    chaos.run(kStart + 3s, true);
    const auto& leader = chaos.net().leader;
    const bool can_work = f.unplugged == 0 && !f.switch_refuses;
    RC_CLASSIFY(leader.state() == Registration::State::kActive);
    if (can_work) {
      RC_ASSERT(leader.state() == Registration::State::kActive);
    } else {
      RC_ASSERT(leader.state() == Registration::State::kFailed);
      RC_ASSERT(!leader.error().text.empty());
      RC_ASSERT(leader.deadline() == wire::kNever);
    }
  }));
}

TEST(RegistrationProperty, ACalmNetworkNotifiesEveryMemberOfTheFailure) {
  EXPECT_TRUE(rc::check([] {
    Faults f = any_faults();
    f.switch_refuses = true;
    f.loss_percent = 0;
    Chaos chaos(f, *rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(chaos.net().start().has_value());
    chaos.run(kStart + 3s, false);
    for (const auto& [address, m] : chaos.net().hosts) {
      RC_ASSERT(m.state() == Membership::State::kFailed);
      RC_ASSERT(m.reject_reason() == wire::MrpReject::kTableFull);
    }
  }));
}

TEST(RegistrationProperty, UnregisteringAtAnyMomentEndsWithinItsRepeats) {
  EXPECT_TRUE(rc::check([] {
    const Faults f = any_faults();
    Chaos chaos(f, *rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(chaos.net().start().has_value());
    const auto moment = kStart + std::chrono::milliseconds(*rc::gen::inRange(0, 1200));
    chaos.run(moment, false);
    chaos.net().unregister();
    chaos.run(chaos.net().now + 200ms, false);
    RC_ASSERT(chaos.net().leader.state() == Registration::State::kGone);
  }));
}

}  // namespace
}  // namespace cepheus::mrp
