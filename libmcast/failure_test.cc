#include "libmcast/failure.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

namespace cepheus::mcast {
namespace {

TEST(LastError, BelongsToTheCallingThread) {
  set_last_error(MCAST_ERR_FABRIC, "mine");
  std::thread([] {
    EXPECT_STREQ(last_error(), "");
    set_last_error(MCAST_ERR_INVALID, "theirs");
    EXPECT_STREQ(last_error(), "theirs");
  }).join();
  EXPECT_STREQ(last_error(), "mine");
}

TEST(LastError, TruncatesLongTexts) {
  EXPECT_EQ(set_last_error(MCAST_ERR_AGAIN, std::string(5000, 'x')), MCAST_ERR_AGAIN);
  EXPECT_EQ(std::string(last_error()), std::string(511, 'x'));
  set_last_error(MCAST_ERR_AGAIN, "short");
  EXPECT_STREQ(last_error(), "short");
}

TEST(Failure, KeepsWhatTheCallerCanDo) {
  EXPECT_EQ(status_of(wire::ErrorCode::kInvalid), MCAST_ERR_INVALID);
  EXPECT_EQ(status_of(wire::ErrorCode::kUnavailable), MCAST_ERR_NO_DEVICE);
  EXPECT_EQ(status_of(wire::ErrorCode::kRefused), MCAST_ERR_REJECTED);
  EXPECT_EQ(status_of(wire::ErrorCode::kTimedOut), MCAST_ERR_TIMED_OUT);
  EXPECT_EQ(errno_text("opening it", ENOENT), "opening it: No such file or directory");
}

}  // namespace
}  // namespace cepheus::mcast
