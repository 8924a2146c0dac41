// set() posts the semaphore once for each waiting thread that no earlier call has woken. A thread
// that is woken in vain checks again and waits again. renew() keeps the descriptor's number and
// O_NONBLOCK by dup3(2). Without a free descriptor it leaves the parent's in place.
#include "nic-emulator/verbs/device/readiness.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
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
  is_set_.store(true);
  const int waiting = waiting_.load();
  if (waiting == 0) return;
  int awake = 0;  // threads that an earlier call has woken, and that do not run yet
  for (::sem_getvalue(&awake_, &awake); awake < waiting; ++awake) ::sem_post(&awake_);
}

void Readiness::clear() {
  is_set_.store(false);
  // Never blocks, even on a blocking descriptor: the owner's lock is held and the value is not 0.
  eventfd_t value = 0;
  ::eventfd_read(fd(), &value);
}

void Readiness::renew() {
  is_set_.store(false);
  waiting_.store(0);
  ::sem_init(&awake_, 0, 0);
  const int flags = ::fcntl(fd(), F_GETFL) & O_NONBLOCK;
  const int fresh = ::eventfd(0, EFD_CLOEXEC | (flags != 0 ? EFD_NONBLOCK : 0));
  if (fresh < 0) return;
  ::dup3(fresh, fd(), O_CLOEXEC);
  ::close(fresh);
}

bool Readiness::wait() {
  if ((::fcntl(fd(), F_GETFL) & O_NONBLOCK) != 0) {
    if (is_set_.load()) return true;
    errno = EAGAIN;
    return false;
  }
  const struct Waiting {
    explicit Waiting(std::atomic<int>& of) : count(of) { ++count; }
    ~Waiting() { --count; }
    std::atomic<int>& count;
  } waiting(waiting_);
  // Another thread may have taken it meanwhile: the caller checks, and waits again.
  return is_set_.load() || ::sem_wait(&awake_) == 0 || is_set_.load();
}

}  // namespace cepheus::verbs
