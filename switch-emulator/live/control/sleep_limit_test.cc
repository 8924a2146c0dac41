#include <gtest/gtest.h>
#include <poll.h>

#include <future>

#include "switch-emulator/live/control/control_thread.h"
#include "switch-emulator/live/control/test_lingering.h"

namespace cepheus::live {
namespace {

TEST(SleepLimit, EndsACloseThatLingers) {
  Lingering connection;
  auto closed = std::async(std::launch::async, [&] {
    const SleepLimit time_limit(std::chrono::milliseconds(10));
    connection.mine.reset();
  });
  const bool has_closed = closed.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  EXPECT_TRUE(has_closed);
  if (!has_closed) connection.peer.reset();  // lets it go on
}

TEST(SleepLimit, EndsWithItsObject) {
  { const SleepLimit time_limit(std::chrono::milliseconds(1)); }
  EXPECT_EQ(poll(nullptr, 0, 50), 0);  // not interrupted
}

}  // namespace
}  // namespace cepheus::live
