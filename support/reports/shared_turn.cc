#include "support/reports/shared_turn.h"

#include <fcntl.h>

#include <thread>

namespace cepheus::reports {
namespace {

constexpr int kWorks = 0, kWaits = 1;  // bytes of the file

struct flock byte_of(int byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

}  // namespace

bool SharedTurn::lock(int byte) {
  struct flock lock = byte_of(byte, F_WRLCK);
  return fcntl(fd_, F_OFD_SETLK, &lock) == 0;
}

void SharedTurn::unlock(int byte) {
  struct flock lock = byte_of(byte, F_UNLCK);
  fcntl(fd_, F_OFD_SETLK, &lock);
}

bool SharedTurn::take() {
  if (lock(kWorks)) return true;
  if (!lock(kWaits)) return false;
  // No lock that the kernel waits for: it knows no time-out.
  const auto until = std::chrono::steady_clock::now() + patience_;
  while (!lock(kWorks) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // Before the work begins: who asks from now on is not covered by it.
  unlock(kWaits);
  return true;
}

}  // namespace cepheus::reports
