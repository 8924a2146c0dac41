#include "switch-emulator/ports/bell.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include "switch-emulator/ports/test_waiting_crowd.h"

namespace cepheus::fabric {
namespace {

bool is_readable(int fd) {
  pollfd watched{fd, POLLIN, 0};
  return poll(&watched, 1, 0) == 1;
}

TEST(Bell, WakesOnceForAnyNumberOfRings) {
  auto bell = Bell::create();
  ASSERT_TRUE(bell);
  EXPECT_FALSE(is_readable(bell->client_end()));
  for (int ring = 0; ring < 3; ++ring) bell->ring();
  EXPECT_TRUE(is_readable(bell->client_end()));
  epoll_event event{};
  EXPECT_EQ(epoll_wait(bell->client_end(), &event, 1, 0), 1);
  EXPECT_FALSE(is_readable(bell->client_end()));
  bell->ring();
  EXPECT_TRUE(is_readable(bell->client_end()));
}

TEST(Bell, RingsOnWithoutAListener) {
  auto bell = Bell::create();
  ASSERT_TRUE(bell);
  bell->forget_client_end();
  for (int ring = 0; ring < 1000; ++ring) bell->ring();
  EXPECT_FALSE(bell->is_abused());
}

TEST(Bell, IsAbusedWhenThousandsWaitBehindIt) {
  auto bell = Bell::create();
  ASSERT_TRUE(bell);
  const WaitingCrowd crowd(bell->client_end(), 10);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!bell->is_abused() && std::chrono::steady_clock::now() < until) bell->ring();
  EXPECT_TRUE(bell->is_abused());
}

}  // namespace
}  // namespace cepheus::fabric
