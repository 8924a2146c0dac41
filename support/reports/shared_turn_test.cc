#include "support/reports/shared_turn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <future>

#include "wire/unique_fd.h"

namespace cepheus::reports {
namespace {

using std::chrono::milliseconds;
using wire::UniqueFd;

constexpr milliseconds kLong{60'000};

class Turns : public testing::Test {
 protected:
  Turns() {
    char pattern[] = "/tmp/turn-XXXXXX";
    UniqueFd(::mkstemp(pattern));
    path_ = pattern;
  }
  ~Turns() override { ::unlink(path_.c_str()); }

  UniqueFd another() const { return UniqueFd(::open(path_.c_str(), O_RDWR | O_CLOEXEC)); }
  // Whether some process waits for its turn: nobody else can then.
  bool somebody_waits() const {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_start = 1;
    lock.l_len = 1;
    const UniqueFd file = another();
    return ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  }

  std::string path_;
};

TEST_F(Turns, WhoeverComesDuringWorkIsCoveredByOneWhoWaits) {
  UniqueFd working = another();
  ASSERT_TRUE(SharedTurn(working.get(), kLong).take());
  const UniqueFd waiting = another();
  auto second =
      std::async(std::launch::async, [&] { return SharedTurn(waiting.get(), kLong).take(); });
  while (!somebody_waits()) std::this_thread::yield();
  for (int i = 0; i < 10; ++i) {
    const UniqueFd late = another();
    EXPECT_FALSE(SharedTurn(late.get(), kLong).take());
  }
  EXPECT_EQ(second.wait_for(milliseconds(0)), std::future_status::timeout) << "works beside it";
  working.reset();
  EXPECT_TRUE(second.get());
  EXPECT_FALSE(somebody_waits()) << "the next one must wait for a turn of its own";
}

TEST_F(Turns, ComeOneAfterTheOther) {
  for (int i = 0; i < 3; ++i) {
    const UniqueFd file = another();
    EXPECT_TRUE(SharedTurn(file.get(), kLong).take());
  }
}

TEST_F(Turns, AProcessThatIsStoppedInItsTurnHoldsNobodyUp) {
  const UniqueFd stopped = another();
  ASSERT_TRUE(SharedTurn(stopped.get()).take());
  const UniqueFd next = another();
  EXPECT_TRUE(SharedTurn(next.get(), milliseconds(5)).take());
}

}  // namespace
}  // namespace cepheus::reports
