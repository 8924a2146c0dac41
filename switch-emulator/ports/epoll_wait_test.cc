#include "switch-emulator/ports/epoll_wait.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include "switch-emulator/ports/unique_fd.h"

namespace {
int refusal = 0;  // the errno of epoll_pwait2(); 0: the kernel's own
}  // namespace

// In place of the C library's: an older kernel, or a container's seccomp profile.
extern "C" int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* limit,
                            const sigset_t* mask) {
  if (refusal != 0) {
    errno = refusal;
    return -1;
  }
  return static_cast<int>(syscall(SYS_epoll_pwait2, epoll, events, most, limit, mask, 8));
}

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

class EpollWait : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    refusal = GetParam();
    epoll_event event{EPOLLIN | EPOLLET, {}};
    ASSERT_EQ(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event_.get(), &event), 0);
  }
  void TearDown() override { refusal = 0; }
  int wait(wire::Duration most) { return wait_for_events(epoll_.get(), events_, most); }

  const UniqueFd epoll_{epoll_create1(EPOLL_CLOEXEC)};
  const UniqueFd event_{eventfd(0, EFD_CLOEXEC)};
  std::array<epoll_event, 2> events_{};
};

TEST_P(EpollWait, ReportsAnEventOnce) {
  EXPECT_EQ(wait(0ns), 0);
  eventfd_write(event_.get(), 1);
  EXPECT_EQ(wait(0ns), 1);
  EXPECT_EQ(wait(1us), 0);
}

TEST_P(EpollWait, WithoutATimeWaitsForTheEvent) {
  std::thread other([&] { eventfd_write(event_.get(), 1); });
  EXPECT_EQ(wait(-1ns), 1);
  other.join();
}

TEST_P(EpollWait, ReportsThatItCantWait) {
  const int closed = dup(epoll_.get());
  close(closed);
  EXPECT_EQ(wait_for_events(closed, events_, 1us), -1);
  EXPECT_EQ(errno, EBADF);
}

INSTANTIATE_TEST_SUITE_P(Kernels, EpollWait, testing::Values(0, ENOSYS, EPERM));

}  // namespace
}  // namespace cepheus::fabric
