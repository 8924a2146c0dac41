#include "replica/volume/volume.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cstddef>

namespace cepheus::replica {
namespace {

TEST(Volume, IsAnErrorAndBlocksNoSignalsIfNoThreadStarts) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 48), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  const auto volume = Volume::open({});
  EXPECT_EQ(pthread_setattr_default_np(&usual), 0);
  ASSERT_FALSE(volume);
  EXPECT_EQ(volume.error().error, -EAGAIN);
  EXPECT_EQ(volume.error().text.find("can't start a thread: "), 0u) << volume.error().text;
  sigset_t blocked;
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
}

}  // namespace
}  // namespace cepheus::replica
