// Work that many processes want done at one moment and that one of them can do for all: each asks
// for a turn; who gets none knows that the work begins anew after his asking.
#pragma once

#include <chrono>

namespace cepheus::reports {

class SharedTurn {
 public:
  // `fd`: a file that all of them open for themselves, for writing; it holds no data. Turns are
  // locks on its first two bytes (of the open file: threads of a process count apart, too) and end
  // when `fd` is closed. Who works for longer than `patience` may be a stopped process: then the
  // next one works beside it.
  explicit SharedTurn(int fd, std::chrono::milliseconds patience = std::chrono::milliseconds(100))
      : fd_(fd), patience_(patience) {}

  // True: do the work. False: a process that is about to do it has not begun, and will see what
  // was done before this call. Of any number that ask during one's work, one waits for its end, the
  // others get the answer at once.
  bool take();

 private:
  bool lock(int byte);
  void unlock(int byte);

  const int fd_;
  const std::chrono::milliseconds patience_;
};

}  // namespace cepheus::reports
