#include "collectives/core/comparison.h"

#include <gtest/gtest.h>

#include <vector>

namespace cepheus::coll {
namespace {

using std::chrono::microseconds;

std::vector<Comparison::Turn> turns(Comparison& comparison) {
  std::vector<Comparison::Turn> all;
  while (!comparison.is_due()) all.push_back(comparison.next());
  return all;
}

TEST(SizeClass, EndsAtAPowerOfTwo) {
  constexpr auto kBcast = Collective::kBcast;
  EXPECT_EQ(to_text(SizeClass(kBcast, 1, true)), "up to 1 B");
  EXPECT_EQ(to_text(SizeClass(kBcast, 1023, true)), "up to 1 KiB");
  EXPECT_EQ(to_text(SizeClass(kBcast, 1024, true)), "up to 1 KiB");
  EXPECT_EQ(to_text(SizeClass(kBcast, 1025, true)), "up to 2 KiB");
  EXPECT_EQ(to_text(SizeClass(kBcast, std::size_t{3} << 40, false)), "ibcast up to 4 TiB");
  EXPECT_NE(SizeClass(kBcast, 10, true), SizeClass(kBcast, 10, false));
}

TEST(SizeClass, HasOneCollective) {
  EXPECT_EQ(to_text(SizeClass(Collective::kAllreduce, 8, true)), "allreduce up to 8 B");
  EXPECT_EQ(to_text(SizeClass(Collective::kAllgather, 16'000, false)), "iallgather up to 16 KiB");
  EXPECT_NE(SizeClass(Collective::kAllreduce, 8, true), SizeClass(Collective::kReduce, 8, true));
}

TEST(SizeClass, OfBarriersHasNoSize) {
  EXPECT_EQ(to_text(SizeClass(Collective::kBarrier, 0, true)), "barrier");
  EXPECT_EQ(to_text(SizeClass(Collective::kBarrier, 0, false)), "ibarrier");
}

TEST(Comparison, SendsSamplesTheOtherWayBehindThoseOfThePlan) {
  Comparison comparison(Plan{Way::kNetwork, 3, 2});
  const auto all = turns(comparison);
  ASSERT_EQ(all.size(), 5u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].way, i < 3 ? Way::kNetwork : Way::kOther);
    EXPECT_EQ(all[i].is_sample, i >= 3);
    EXPECT_EQ(all[i].is_timed, i != 0 && i != 3) << "the first one may set up a group";
  }
  comparison.follow({Way::kOther, 1, 0});
  EXPECT_FALSE(comparison.is_due());
  EXPECT_EQ(comparison.next().way, Way::kOther);
  EXPECT_TRUE(comparison.is_due());
}

TEST(Comparison, TimesTheLastOfALongRun) {
  Comparison comparison(Plan{Way::kOther, 1000, 0});
  const auto all = turns(comparison);
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i].is_timed, i >= all.size() - Comparison::kWindow) << i;
}

TEST(Comparison, LeavesTheLongestTimeOut) {
  Comparison comparison(Plan{Way::kNetwork, 4, 2});
  for (const int took : {1000, 30, 40, 5000, 700, 100}) {
    const auto turn = comparison.next();
    if (turn.is_timed) comparison.end(turn, microseconds(took));
  }
  EXPECT_EQ(comparison.times().own, 35'000);
  EXPECT_EQ(comparison.times().samples, 100'000) << "there is one alone";
}

TEST(Comparison, IsVoidIfABroadcastWentAnotherWay) {
  Comparison comparison(Plan{Way::kNetwork, 2, 2});
  (void)comparison.next();
  comparison.end(comparison.next(), microseconds(10));
  (void)comparison.next();
  comparison.discard(comparison.next());
  EXPECT_EQ(comparison.times().own, 10'000);
  EXPECT_EQ(comparison.times().samples, Times::kVoid);
  comparison.follow({Way::kNetwork, 2, 2});
  EXPECT_EQ(comparison.times().samples, Times::kNone);
}

TEST(Comparison, GoesOnWithTheTimesOfThePlanBefore) {
  Comparison comparison(Plan{Way::kNetwork, 2, 2});
  const auto take = [&comparison](int took) {
    const auto turn = comparison.next();
    if (turn.is_timed) comparison.end(turn, microseconds(took));
  };
  for (const int took : {1000, 30, 700, 40}) take(took);
  comparison.follow({Way::kNetwork, 1, 2, true});
  for (const int took : {9000, 700, 80}) take(took);
  EXPECT_EQ(comparison.times().own, 30'000) << "the longest of both is left out";
  EXPECT_EQ(comparison.times().samples, 40'000);
}

// --- Of reductions.

TEST(Comparison, TimesAsManyOwnReductionsAsSamples) {
  Comparison comparison(Plan{Way::kNetwork, 100, 5}, true);
  const auto all = turns(comparison);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].is_timed, i >= 96 && i != 100) << i;
  comparison.follow({Way::kNetwork, 100, 0});
  const auto alone = turns(comparison);
  for (std::size_t i = 0; i < alone.size(); ++i)
    EXPECT_EQ(alone[i].is_timed, i >= alone.size() - Comparison::kWindow) << i;
}

TEST(Comparison, HasTheMeanOfReductionsAndItsError) {
  Comparison comparison(Plan{Way::kNetwork, 5, 5}, true);
  for (const int took : {1000, 30, 40, 50, 5000, 700, 100, 100, 100, 100}) {
    const auto turn = comparison.next();
    if (turn.is_timed) comparison.end(turn, std::chrono::nanoseconds(took));
  }
  const Times times = comparison.times();
  EXPECT_EQ(times.own, 1280);
  // Variance by n - 1: (1250^2 + 1240^2 + 1230^2 + 3720^2) / 3.
  EXPECT_NEAR(times.own_error, (1562500.0 + 1537600 + 1512900 + 13838400) / 3 / 4, 1);
  EXPECT_EQ(times.samples, 100);
  EXPECT_EQ(times.samples_error, 0);
}

TEST(Times, OfReductionsAreThoseOfTheFastestRank) {
  Times all;
  all.take_faster({20, 200, 2, 3});
  all.take_faster({10, 300, 4, 5});
  EXPECT_EQ(all.own, 10);
  EXPECT_EQ(all.own_error, 4) << "the same rank's";
  EXPECT_EQ(all.samples, 200);
  EXPECT_EQ(all.samples_error, 3);
  all.take_faster({Times::kVoid, Times::kNone});
  all.take_faster({5, 100});
  EXPECT_TRUE(all.is_void());
  EXPECT_EQ(all.own, Times::kVoid);
  EXPECT_EQ(all.samples, 100);
}

TEST(Times, OfARankThatHasFailedFailOfAll) {
  Times slowest{Times::kVoid, 10}, fastest{Times::kVoid, 10};
  slowest.take_slower({Times::kFailed, Times::kFailed});
  fastest.take_faster({Times::kFailed, Times::kFailed});
  slowest.take_slower({100, 100});
  fastest.take_faster({100, 100});
  EXPECT_TRUE(slowest.has_failed());
  EXPECT_TRUE(fastest.has_failed());
}

TEST(Times, OfAllRanksAreThoseOfTheSlowest) {
  Times all{10, 300};
  all.take_slower({20, 200});
  EXPECT_EQ(all.own, 20);
  EXPECT_EQ(all.samples, 300);
  all.take_slower({Times::kVoid, 100});
  all.take_slower({500, 100});
  EXPECT_EQ(all.own, Times::kVoid);
  EXPECT_EQ(all.samples, 300);
}

}  // namespace
}  // namespace cepheus::coll
