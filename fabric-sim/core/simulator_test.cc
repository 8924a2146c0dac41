#include "fabric-sim/core/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "fabric-sim/core/random.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr Instant at(Duration t) { return Instant{t}; }

class Recorder : public Actor {
 public:
  void on_event(Instant now, std::uint64_t what) override {
    whats.push_back(what);
    times.push_back(now.time_since_epoch());
  }
  std::vector<std::uint64_t> whats;
  std::vector<Duration> times;
};

// For any distances and any requests of actors during the run: near and far events have one order.
TEST(Simulator, KeepsTheOrderOfTimeOverAllDistances) {
  struct Wanderer final : Actor {
    Simulator& simulator;
    Random& random;
    std::vector<Instant> requests;  // by number of the event
    std::vector<std::uint64_t> seen;
    Wanderer(Simulator& s, Random& r) : simulator(s), random(r) {}
    void request_event() {
      constexpr std::int64_t kDistances[] = {0, 1, 340, 4095, 4096, 4097, 100'000, 10'000'000};
      const std::int64_t most = kDistances[random.below(std::size(kDistances))];
      const Duration wait{
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most) + 1))};
      requests.push_back(simulator.now() + wait);
      simulator.schedule(requests.back(), *this, requests.size() - 1);
    }
    void on_event(Instant now, std::uint64_t what) override {
      EXPECT_EQ(now, requests[what]);
      seen.push_back(what);
      for (auto n = random.below(3); n > 0 && requests.size() < 20'000; --n) request_event();
    }
  };
  Random random(testing::UnitTest::GetInstance()->random_seed());
  Simulator simulator(100'000);
  Wanderer wanderer(simulator, random);
  for (int i = 0; i < 200; ++i) wanderer.request_event();
  for (Instant until{}; simulator.run(until) != Simulator::End::kIdle; until += 3333ns) {
  }
  ASSERT_EQ(wanderer.seen.size(), wanderer.requests.size());
  for (std::size_t i = 1; i < wanderer.seen.size(); ++i) {
    const std::uint64_t a = wanderer.seen[i - 1], b = wanderer.seen[i];
    ASSERT_TRUE(wanderer.requests[a] < wanderer.requests[b] ||
                (wanderer.requests[a] == wanderer.requests[b] && a < b));
  }
}

TEST(Simulator, TreatsThePastAsNow) {
  Simulator simulator(100);
  Recorder recorder;
  simulator.schedule(at(50us), recorder, 1);
  simulator.run();
  simulator.schedule(at(10us), recorder, 2);
  simulator.run();
  EXPECT_THAT(recorder.times, ElementsAre(50us, 50us));
}

TEST(Simulator, StopsTheClockAtTheLimit) {
  Simulator simulator(100);
  Recorder recorder;
  simulator.schedule(at(50us), recorder, 1);
  EXPECT_EQ(simulator.run(at(49us)), Simulator::End::kTime);
  EXPECT_EQ(simulator.now(), at(49us));
  EXPECT_TRUE(recorder.whats.empty());
  EXPECT_EQ(simulator.run(at(50us)), Simulator::End::kIdle);
  EXPECT_THAT(recorder.whats, ElementsAre(1));
}

class Forever : public Actor {
 public:
  explicit Forever(Simulator& simulator) : simulator_(simulator) {}
  void on_event(Instant now, std::uint64_t) override { simulator_.schedule(now, *this); }

 private:
  Simulator& simulator_;
};

TEST(Simulator, EndsALivelockByItsEventBudget) {
  Simulator simulator(1000);
  Forever forever(simulator);
  simulator.schedule(at(0us), forever);
  EXPECT_EQ(simulator.run(at(1s)), Simulator::End::kBudget);
  EXPECT_EQ(simulator.events(), 1000u);
}

class EachTenthMillisecond : public Actor {
 public:
  explicit EachTenthMillisecond(Simulator& simulator) : simulator_(simulator) {}
  void on_event(Instant now, std::uint64_t) override { simulator_.schedule(now + 100us, *this); }

 private:
  Simulator& simulator_;
};

TEST(Simulator, HasABudgetThatGrowsWithTime) {
  const auto run_with = [](std::uint64_t per_millisecond) {
    Simulator simulator(100, per_millisecond);
    EachTenthMillisecond actor(simulator);
    simulator.schedule(at(0us), actor);
    return simulator.run(at(1s));
  };
  EXPECT_EQ(run_with(10), Simulator::End::kTime);
  EXPECT_EQ(run_with(9), Simulator::End::kBudget);
}

class Stopper : public Actor {
 public:
  explicit Stopper(Simulator& simulator) : simulator_(simulator) {}
  void on_event(Instant, std::uint64_t) override { simulator_.stop(); }

 private:
  Simulator& simulator_;
};

TEST(Simulator, RunsNothingAfterStop) {
  Simulator simulator(100);
  Stopper stopper(simulator);
  Recorder recorder;
  simulator.schedule(at(1us), stopper);
  simulator.schedule(at(1us), recorder);
  EXPECT_EQ(simulator.run(), Simulator::End::kStopped);
  EXPECT_TRUE(recorder.whats.empty());
}

TEST(Trace, DependsOnTimePlaceTextAndValue) {
  const auto hash = [](Duration t, const char* place, const char* text, std::uint64_t value) {
    Trace trace;
    trace.note(at(t), place, text, value);
    return trace.hash();
  };
  const std::uint64_t one = hash(1us, "h0", "sends", 1);
  EXPECT_EQ(one, hash(1us, "h0", "sends", 1));
  EXPECT_NE(one, hash(2us, "h0", "sends", 1));
  EXPECT_NE(one, hash(1us, "h1", "sends", 1));
  EXPECT_NE(one, hash(1us, "h0", "loses", 1));
  EXPECT_NE(one, hash(1us, "h0", "sends", 2));
}

}  // namespace
}  // namespace cepheus::sim
