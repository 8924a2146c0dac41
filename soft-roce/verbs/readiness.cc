#include "soft-roce/verbs/readiness.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace cepheus::verbs {

wire::Result<Readiness> Readiness::create() {
  const int fd = ::eventfd(0, EFD_CLOEXEC);
  if (fd < 0) {
    return wire::fail(wire::ErrorCode::kUnavailable, std::string("can't open an eventfd: ") +
                                                         std::strerror(errno) +
                                                         "; raise the limit of open files");
  }
  return Readiness(fd);
}

Readiness::~Readiness() {
  if (fd_ >= 0) ::close(fd_);
}

void Readiness::set() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
}

void Readiness::clear() {
  // Never blocks, though the descriptor may: the owner's lock is held and the value is not 0.
  std::uint64_t value = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd_, &value, sizeof value);
}

void Readiness::renew() {
  const int flags = ::fcntl(fd_, F_GETFL) & O_NONBLOCK;
  const int fresh = ::eventfd(0, EFD_CLOEXEC | (flags != 0 ? EFD_NONBLOCK : 0));
  if (fresh < 0) return;
  ::dup3(fresh, fd_, O_CLOEXEC);
  ::close(fresh);
}

bool Readiness::wait() const {
  pollfd want{fd_, POLLIN, 0};
  if ((::fcntl(fd_, F_GETFL) & O_NONBLOCK) != 0) {
    if (::poll(&want, 1, 0) > 0) return true;
    errno = EAGAIN;
    return false;
  }
  return ::poll(&want, 1, -1) > 0;
}

}  // namespace cepheus::verbs
