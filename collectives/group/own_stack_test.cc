#include "collectives/group/own_stack.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <cstddef>

namespace cepheus::coll {
namespace {

std::size_t usual_stack() {
  pthread_attr_t usual;
  std::size_t bytes = 0;
  EXPECT_EQ(pthread_getattr_default_np(&usual), 0);
  EXPECT_EQ(pthread_attr_getstacksize(&usual, &bytes), 0);
  return bytes;
}

void set_usual_stack(std::size_t bytes) {
  pthread_attr_t usual;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&usual, bytes), 0);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
}

TEST(OwnStack, IsLargeWhereTheProgramsStacksAreSmall) {
  const std::size_t before = usual_stack();
  set_usual_stack(std::size_t{64} << 10);
  bool is_filled = false;
  on_own_stack([&] {
    volatile char large[512 << 10];
    for (std::size_t i = 0; i < sizeof large; i += 1024) large[i] = 1;
    is_filled = large[0] == 1;
  });
  EXPECT_TRUE(is_filled);
  set_usual_stack(before);
}

TEST(OwnStack, LeavesSignalsToTheProgramButThoseOfItsOwnAccesses) {
  sigset_t blocked;
  sigemptyset(&blocked);
  on_own_stack([&] { (void)pthread_sigmask(SIG_BLOCK, nullptr, &blocked); });
  EXPECT_EQ(sigismember(&blocked, SIGUSR1), 1);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE}) EXPECT_EQ(sigismember(&blocked, own), 0);
}

}  // namespace
}  // namespace cepheus::coll
