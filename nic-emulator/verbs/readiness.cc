#include "nic-emulator/verbs/readiness.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

namespace cepheus::verbs {

wire::Result<Readiness> Readiness::create() {
  const int fd = ::eventfd(0, EFD_CLOEXEC);
  if (fd < 0) {
    return wire::unavailable(std::string("can't open an eventfd: ") + std::strerror(errno) +
                             "; raise the limit of open files");
  }
  return Readiness(fd);
}

void Readiness::set() {
  ::eventfd_write(fd(), 1);
  is_set_.store(1);
  if (waiting_.load() > 0) {
    ::syscall(SYS_futex, &is_set_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
}

void Readiness::clear() {
  is_set_.store(0);
  // Never blocks, even on a blocking descriptor: the owner's lock is held and the value is not 0.
  eventfd_t value = 0;
  ::eventfd_read(fd(), &value);
}

void Readiness::renew() {
  is_set_.store(0);
  waiting_.store(0);
  const int flags = ::fcntl(fd(), F_GETFL) & O_NONBLOCK;
  const int fresh = ::eventfd(0, EFD_CLOEXEC | (flags != 0 ? EFD_NONBLOCK : 0));
  if (fresh < 0) return;
  ::dup3(fresh, fd(), O_CLOEXEC);
  ::close(fresh);
}

bool Readiness::wait() {
  if ((::fcntl(fd(), F_GETFL) & O_NONBLOCK) != 0) {
    if (is_set_.load() != 0) return true;
    errno = EAGAIN;
    return false;
  }
  ++waiting_;
  long rc = 0;
  // EAGAIN: it was set in between.
  while (is_set_.load() == 0 && (rc == 0 || errno == EAGAIN)) {
    rc = ::syscall(SYS_futex, &is_set_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }
  const int error = errno;
  --waiting_;
  errno = error;
  // Another thread may have taken it meanwhile: the caller checks, and waits again.
  return rc == 0 || error == EAGAIN || is_set_.load() != 0;
}

}  // namespace cepheus::verbs
