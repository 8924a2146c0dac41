#include "switch-emulator/live/datapath/bulk_run.h"

#include <gtest/gtest.h>

namespace cepheus::live {
namespace {

using namespace std::chrono_literals;

constexpr wire::Instant kStart{1h};

void take(BulkRun& run, wire::Instant now, int frames) {
  for (int i = 0; i < frames; ++i) run.took_frame();
  run.looked(now, true);
}

TEST(BulkRun, IsManyFramesInARow) {
  BulkRun run;
  EXPECT_FALSE(run.goes_on(kStart));
  take(run, kStart, 50);
  EXPECT_FALSE(run.goes_on(kStart)) << "a few frames";
  run.looked(kStart + 1us, false);
  take(run, kStart + 2us, 50);
  EXPECT_FALSE(run.goes_on(kStart + 2us)) << "again a few";
  take(run, kStart + 3us, 50);
  EXPECT_TRUE(run.goes_on(kStart + 3us));
}

TEST(BulkRun, GoesOnForAMillisecond) {
  BulkRun run;
  take(run, kStart, 100);
  run.looked(kStart + 1us, false);
  take(run, kStart + 500us, 1);
  EXPECT_TRUE(run.goes_on(kStart + 999us)) << "an acknowledgement among them";
  EXPECT_FALSE(run.goes_on(kStart + 1ms));
}

}  // namespace
}  // namespace cepheus::live
