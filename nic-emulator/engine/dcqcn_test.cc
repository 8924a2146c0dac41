// The reaction point against trajectories computed by hand, and its invariants.
#include "nic-emulator/engine/dcqcn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace cepheus::rnic {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using wire::BitRate;
using wire::Instant;

constexpr std::uint64_t kGiga = 1'000'000'000;
constexpr BitRate kHundredGigabits{100 * kGiga};
constexpr Instant kStart{1s};

struct Sender {
  explicit Sender(const DcqcnParameters& p) : parameters(p), rate(parameters, kHundredGigabits) {}
  void pass(wire::Duration time) { rate.advance(now += time); }
  void notify() { rate.on_notification(now); }
  std::uint64_t bps() const { return rate.rate().bits_per_second; }
  std::uint64_t target_bps() const { return rate.target().bits_per_second; }

  DcqcnParameters parameters;
  Instant now = kStart;
  Dcqcn rate;
};

TEST(Dcqcn, HalvesAtTheFirstNotificationsAndApproachesTheTargetInFastRecovery) {
  Sender sender(DcqcnParameters::orig());
  EXPECT_FALSE(sender.rate.is_limited());
  EXPECT_EQ(sender.bps(), 100 * kGiga);
  sender.notify();
  EXPECT_EQ(sender.bps(), 50 * kGiga);
  EXPECT_EQ(sender.target_bps(), 100 * kGiga);
  EXPECT_EQ(sender.rate.alpha(), 1);
  sender.pass(50us);
  sender.notify();
  EXPECT_EQ(sender.bps(), 25 * kGiga);
  EXPECT_EQ(sender.target_bps(), 50 * kGiga);
  for (const std::uint64_t bps : {37'500'000'000, 43'750'000'000, 46'875'000'000, 48'437'500'000}) {
    sender.pass(54us);
    EXPECT_LT(sender.bps(), bps) << "before its time";
    sender.pass(1us);
    EXPECT_EQ(sender.bps(), bps);
  }
  EXPECT_EQ(sender.target_bps(), 50 * kGiga);
  sender.pass(55us);  // the fifth
  EXPECT_EQ(sender.target_bps(), 50'040'000'000u);
  EXPECT_EQ(sender.bps(), 49'238'750'000u);
}

TEST(Dcqcn, AlphaFollowsWhetherNotificationsCome) {
  Sender sender(DcqcnParameters::orig());
  sender.notify();
  sender.pass(55us);
  EXPECT_DOUBLE_EQ(sender.rate.alpha(), 255.0 / 256);
  sender.pass(55us);
  EXPECT_DOUBLE_EQ(sender.rate.alpha(), 255.0 * 255 / 65536);
  sender.notify();
  EXPECT_NEAR(sender.rate.alpha(), 255.0 / 256 * 255 * 255 / 65536 + 1.0 / 256, 1e-8);
}

// A cut is half of alpha times the rate, whatever the target.
TEST(Dcqcn, CutsByHalfOfAlpha) {
  Sender sender(DcqcnParameters::orig());
  sender.notify();
  sender.pass(110us);
  ASSERT_EQ(sender.bps(), 87'500'000'000u);
  sender.notify();
  EXPECT_NEAR(static_cast<double>(sender.bps()), 87.5e9 * (1 - 255.0 * 255 / 65536 / 2), 100);
  EXPECT_EQ(sender.target_bps(), 87'500'000'000u);
}

// 10 MB sent count as much as 55 us. When both have made more than five increases, the target rises
// by 200 Mb/s, then 400.
TEST(Dcqcn, BytesCountAsTheTimerDoesAndBothTogetherIncreaseFaster) {
  Sender sender(DcqcnParameters::orig());
  for (int i = 0; i < 4; ++i) sender.notify();
  ASSERT_EQ(sender.bps(), 6'250'000'000u);
  sender.rate.on_sent(sender.now, 9'999'999);
  EXPECT_EQ(sender.bps(), 6'250'000'000u);
  sender.rate.on_sent(sender.now, 1);
  EXPECT_EQ(sender.bps(), 9'375'000'000u);
  for (int i = 0; i < 5; ++i) sender.rate.on_sent(sender.now, 10'000'000);  // six in all
  EXPECT_EQ(sender.target_bps(), 12'580'000'000u) << "the fifth and the sixth were additive";
  sender.pass(5 * 55us);
  EXPECT_EQ(sender.target_bps(), 12'780'000'000u);
  sender.pass(55us);  // six of both
  EXPECT_EQ(sender.target_bps(), 12'980'000'000u);
  sender.rate.on_sent(sender.now, 10'000'000);
  EXPECT_EQ(sender.target_bps(), 13'180'000'000u) << "the timer has made six only";
  sender.pass(55us);
  EXPECT_EQ(sender.target_bps(), 13'580'000'000u) << "seven of both: twice 200 Mb/s";
}

TEST(Dcqcn, OfHpccCutsAreFourMicrosecondsApartAndATrainOfThemKeepsItsTarget) {
  Sender sender(DcqcnParameters::hpcc(kHundredGigabits));
  EXPECT_EQ(sender.parameters.additive_bps, 20'000'000u);
  EXPECT_EQ(sender.parameters.hyper_bps, 200'000'000u);
  sender.notify();
  EXPECT_EQ(sender.bps(), 50 * kGiga);
  sender.notify();
  sender.pass(2us);
  sender.notify();
  EXPECT_EQ(sender.bps(), 50 * kGiga);
  sender.pass(2us);  // alpha: two ticks with a notification, no decrease
  EXPECT_NEAR(static_cast<double>(sender.bps()), 25e9, 0.3e9);
  EXPECT_EQ(sender.target_bps(), 100 * kGiga);
  EXPECT_EQ(sender.rate.cuts(), 2u);
  sender.pass(299us);
  EXPECT_LT(sender.bps(), 26 * kGiga);
  sender.pass(1us);
  EXPECT_NEAR(static_cast<double>(sender.bps()), 62.5e9, 0.2e9) << "one step of fast recovery";
  sender.notify();
  EXPECT_NEAR(static_cast<double>(sender.target_bps()), 62.5e9, 0.2e9) << "after an increase";
  const std::uint64_t target = sender.target_bps();
  sender.pass(600us);
  EXPECT_EQ(sender.target_bps(), target + 20'000'000);
  sender.pass(600us);
  EXPECT_EQ(sender.target_bps(), target + 420'000'000);
}

TEST(Dcqcn, KeepsNoStateOnceTheRateIsTheLinksAgain) {
  for (const DcqcnParameters& p :
       {DcqcnParameters::orig(), DcqcnParameters::hpcc(kHundredGigabits)}) {
    Sender sender(p);
    for (int i = 0; i < 9; ++i) sender.notify();
    EXPECT_TRUE(sender.rate.is_limited());
    sender.pass(10s);
    EXPECT_FALSE(sender.rate.is_limited());
    EXPECT_EQ(sender.bps(), 100 * kGiga);
    sender.notify();
    EXPECT_EQ(sender.bps(), 50 * kGiga) << "as the first time";
  }
}

TEST(Dcqcn, StaysAboveTheLeastRate) {
  Sender sender(DcqcnParameters::orig());
  for (int i = 0; i < 100; ++i) sender.notify();
  EXPECT_EQ(sender.bps(), 100'000'000u);
  sender.parameters.min_bps = 400 * kGiga;
  sender.rate.reset();
  sender.notify();
  EXPECT_EQ(sender.bps(), 100 * kGiga) << "a link slower than the least rate";
}

// For any input: rates lie between the minimum and the link's rate, never above the target; alpha
// is a fraction; recovery never goes back; reading changes nothing.
TEST(Dcqcn, KeepsItsBoundsAndReadingChangesNothing) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    Sender seldom(seed % 2 == 0 ? DcqcnParameters::orig()
                                : DcqcnParameters::hpcc(kHundredGigabits));
    Sender often(seldom.parameters);
    for (int step = 0; step < 3000; ++step) {
      const wire::Duration time(random() % (step % 100 == 0 ? 5'000'000 : 60'000));
      const std::uint64_t before = seldom.bps();
      for (int i = 0; i < 4; ++i) often.pass(time / 5);
      often.pass(time - time / 5 * 4);
      seldom.now += time;
      if (random() % 3 == 0) {
        seldom.notify();
        often.notify();
      } else {
        const wire::Bytes bytes = random() % 3'000'000;
        seldom.rate.on_sent(seldom.now, bytes);
        often.rate.on_sent(often.now, bytes);
        const bool cut_was_deferred = seldom.parameters.cut_interval > 0us;
        ASSERT_TRUE(cut_was_deferred || seldom.bps() >= before) << "seed " << seed;
      }
      const std::uint64_t least = seldom.parameters.min_bps;
      ASSERT_GE(seldom.bps(), least) << "seed " << seed;
      ASSERT_LE(seldom.bps(), kHundredGigabits.bits_per_second) << "seed " << seed;
      ASSERT_LE(seldom.bps(), seldom.target_bps()) << "seed " << seed;
      ASSERT_GE(seldom.rate.alpha(), 0) << "seed " << seed;
      ASSERT_LE(seldom.rate.alpha(), 1) << "seed " << seed;
      ASSERT_EQ(seldom.bps(), often.bps()) << "seed " << seed << " step " << step;
      ASSERT_EQ(seldom.rate.alpha(), often.rate.alpha()) << "seed " << seed << " step " << step;
    }
  }
}

TEST(Dcqcn, NamesTheImpossibleParameter) {
  const auto error_of = [](auto change) {
    DcqcnParameters p;
    change(p);
    const auto checked = p.check(kHundredGigabits);
    return checked ? std::string() : checked.error().text;
  };
  EXPECT_EQ(error_of([](auto&) {}), "");
  EXPECT_TRUE(DcqcnParameters::hpcc(BitRate{1}).check(BitRate{1}));
  EXPECT_THAT(error_of([](auto& p) { p.g = 0; }), HasSubstr("g must"));
  EXPECT_THAT(error_of([](auto& p) { p.g = 1.5; }), HasSubstr("g must"));
  EXPECT_THAT(error_of([](auto& p) { p.alpha_timer = 0us; }), HasSubstr("alpha_timer"));
  EXPECT_THAT(error_of([](auto& p) { p.rate_timer = 0us; }), HasSubstr("rate_timer"));
  EXPECT_THAT(error_of([](auto& p) { p.byte_counter = 1; }), HasSubstr("byte_counter"));
  EXPECT_THAT(error_of([](auto& p) { p.additive_bps = 10; }), HasSubstr("additive"));
  EXPECT_THAT(error_of([](auto& p) { p.hyper_bps = std::uint64_t{1} << 60; }), HasSubstr("hyper"));
  EXPECT_THAT(error_of([](auto& p) { p.min_bps = 0; }), HasSubstr("min_rate"));
  EXPECT_THAT(error_of([](auto& p) { p.cut_interval = -1ns; }), HasSubstr("cut_interval"));
}

TEST(Dcqcn, TakesParametersAtTheirLimits) {
  DcqcnParameters p;
  p.alpha_timer = p.rate_timer = 100ns;
  p.g = 1;
  p.byte_counter = 4096;
  p.min_bps = 1;
  p.additive_bps = kHundredGigabits.bits_per_second / 100'000;
  EXPECT_TRUE(p.check(kHundredGigabits));
  --p.additive_bps;
  EXPECT_FALSE(p.check(kHundredGigabits));
}

}  // namespace
}  // namespace cepheus::rnic
