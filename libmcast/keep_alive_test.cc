#include "libmcast/keep_alive.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "wire/clock.h"

namespace cepheus::mcast {
namespace {

TEST(KeepAlive, GoesOnAfterWorkThatThrows) {
  std::atomic<int> calls{0};
  std::atomic<bool> again{false};
  KeepAlive thread([&]() -> wire::Instant {
    if (++calls == 1) throw std::bad_alloc();
    again = true;
    again.notify_one();
    return wire::kNever;
  });
  thread.start();
  again.wait(false);
  thread.stop();
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace cepheus::mcast
