// Any loss, duplication and order of packets, and members that are not ready, over one switch, two,
// and three in a row: each member gets each result once, and right.
#include <gtest/gtest.h>

#include <random>

#include "switch-emulator/engine/reduction/test_members.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

// `hosts` at each of `switches` switches in a row; the leader is at the first one.
std::unique_ptr<TestNetwork> make_row(std::size_t switches, std::size_t hosts) {
  auto net = std::make_unique<TestNetwork>();
  for (std::size_t s = 0; s < switches; ++s) net->add_switch();
  for (std::size_t s = 0; s + 1 < switches; ++s) net->link(s, s + 1);
  for (std::size_t h = 0; h < switches * hosts; ++h) net->add_host(h / hosts);
  net->start();
  return net;
}

struct Chance {
  explicit Chance(std::uint32_t seed) : random(seed) {}
  bool percent(int n) { return static_cast<int>(random() % 100) < n; }
  std::size_t below(std::size_t n) { return random() % n; }
  std::mt19937 random;
};

void run_seed(std::uint32_t seed) {
  Chance chance(seed);
  const std::size_t switches = 1 + chance.below(3), hosts = 1 + chance.below(3) + (switches == 1);
  const std::size_t count = switches * hosts;
  const auto window = static_cast<std::uint16_t>(1u << chance.below(4));
  const int loss = static_cast<int>(chance.below(25)), twice = static_cast<int>(chance.below(15));
  const int busy = static_cast<int>(chance.below(20));
  auto net = make_row(switches, hosts);
  TestMembers members(*net, count, window, chance.below(3) * 30);
  // Numbers of units and PSNs wrap soon.
  const Unit wraps[] = {Unit{1} << 16, Unit{1} << 24, (Unit{1} << 24) - net->start_psn().value()};
  members.jump(wraps[chance.below(3)] - 1 - chance.below(15));
  const Unit first = members.results(0);
  const Unit units = first + 20 + chance.below(20);
  members.lose = [&] { return chance.percent(loss); };
  members.repeat = [&] { return chance.percent(twice); };
  members.is_busy = [&] { return chance.percent(busy); };
  members.shuffle = [&](auto& frames) {
    if (chance.percent(twice)) std::ranges::shuffle(frames, chance.random);
  };
  net->lose = [&](std::size_t, std::size_t, const std::string& text) {
    const bool is_registration = text.find(" e1") != std::string::npos;
    return !is_registration && chance.percent(loss);
  };
  const auto is_done = [&] {
    for (std::size_t m = 0; m < count; ++m) {
      if (!members.is_done(m, units)) return false;
    }
    return true;
  };
  for (int step = 0; step < 20'000 && !is_done(); ++step) {
    if (step == 4'000) members.lose = members.repeat = members.is_busy = [] { return false; };
    if (step == 4'000) net->lose = nullptr;
    const std::size_t m = chance.below(count);
    if (members.contributed(m) < units && chance.percent(60)) members.contribute(m);
    if (chance.percent(50)) members.receive(chance.below(count));
    if (chance.percent(3)) members.time_out(chance.below(count));
    if (chance.percent(30)) net->advance(std::chrono::microseconds(chance.below(40'000)));
    ASSERT_FALSE(testing::Test::HasFatalFailure());
  }
  EXPECT_TRUE(is_done()) << "seed " << seed;
  net->advance(20s);
  for (std::size_t s = 0; s < switches; ++s) {
    EXPECT_EQ(net->view(s).reduction->results, units);
    EXPECT_EQ(net->view(s).reduction->newest, units);
  }
  EXPECT_EQ(net->payloads.in_use(), 0u);
}

TEST(ReductionProperty, EveryMemberGetsEveryResultOnceWhateverIsLost) {
  for (std::uint32_t seed = 1; seed <= 40 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    run_seed(seed);
  }
}

}  // namespace
}  // namespace cepheus::fabric
