#include "switch-emulator/engine/group/loss_window.h"

#include <gtest/gtest.h>

#include <random>

namespace cepheus::fabric {
namespace {

// A source that loses each `gap`-th packet, until the window changes no more.
std::uint32_t window_with(std::uint32_t gap) {
  LossWindow window(true);
  std::uint32_t taken = 0;
  for (int i = 0; i < 100; ++i) window.on_loss(taken += gap);
  return window.packets();
}

TEST(LossWindow, IsHalfOfThePacketsBetweenTwoLossesAtMost) {
  LossWindow window(true);
  EXPECT_EQ(window.packets(), 0u) << "no limit";
  EXPECT_EQ(window_with(1'000'000), 0u);
  EXPECT_EQ(window_with(10'000), 1024u) << "it follows slowly";
  EXPECT_EQ(window_with(333), 128u);
  EXPECT_EQ(window_with(10), LossWindow::kLeast);
}

// Each change is sent to all members.
TEST(LossWindow, ChangesSeldomWhileLossesAreRandom) {
  constexpr int kLosses = 1000;
  std::mt19937 random(1);
  for (const std::uint32_t mean : {100, 1000, 10'000}) {
    LossWindow window(true);
    int changes = 0, losses = 0;
    for (std::uint32_t taken = 1; losses < kLosses; ++taken) {
      const bool is_lost = random() % mean == 0;
      losses += is_lost ? 1 : 0;
      changes += (is_lost ? window.on_loss(taken) : window.on_data(taken)) ? 1 : 0;
    }
    EXPECT_LT(changes, kLosses / 10) << mean;
  }
}

TEST(LossWindow, GrowsOnceLossesStop) {
  LossWindow window(true);
  std::uint32_t taken = 0;
  for (int i = 0; i < 100; ++i) window.on_loss(taken += 100);
  ASSERT_EQ(window.packets(), 32u);
  const std::uint32_t last = taken;
  int changes = 0;
  for (; window.packets() != 0 && taken != last + (1 << 20); ++taken) {
    changes += window.on_data(taken) ? 1 : 0;
  }
  EXPECT_EQ(window.packets(), 0u);
  EXPECT_LT(changes, 10);
}

TEST(LossWindow, HoldsAcrossTheWrapOfItsCount) {
  LossWindow window(true);
  std::uint32_t taken = 0u - 5000;
  window.on_loss(taken);
  for (int i = 0; i < 100; ++i) window.on_loss(taken += 333);
  EXPECT_EQ(window.packets(), 128u);
}

}  // namespace
}  // namespace cepheus::fabric
