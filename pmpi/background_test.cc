#include "pmpi/background.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "collectives/host_mpi.h"
#include "pmpi/calls.h"
#include "pmpi/communicator.h"

namespace cepheus::pmpi {
namespace {

using namespace std::chrono_literals;
namespace host = coll::host;

// An MPI library with receives, MPI_Test and MPI_Testany.
std::atomic<int> tests{0};
std::atomic<int> tested{0};  // requests
std::atomic<int> noticed{0};
bool is_stuck = false;                        // a test does not return
bool has_stuck_call = false;                  // and is being called
sigset_t blocked;                             // in the thread that has called it last
std::atomic<Request> complete{kRequestNull};  // this one alone
Request started = 0;
std::mutex mutex;  // of `is_stuck`, `has_stuck_call`, `blocked` and waits for `tests`
std::condition_variable changed;

void set_stuck(bool value) {
  const std::lock_guard lock(mutex);
  is_stuck = value;
  changed.notify_all();
}

// Waits until `is_so()`, which changes under the mutex. False: not within 10 s.
template <typename Predicate>
bool await(Predicate is_so) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, 10s, is_so);
}

int start_receive(void*, int, Datatype, int, int, Comm, Request* out) {
  *out = ++started;
  return kSuccess;
}

int test_any(int count, Request* requests, int* at, int* is_complete, Status*) {
  std::unique_lock lock(mutex);
  ++tests;
  tested += count;
  (void)pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  has_stuck_call = is_stuck;
  changed.notify_all();
  changed.wait(lock, [] { return !is_stuck; });
  has_stuck_call = false;
  Request* const found = std::find(requests, requests + count, complete.load());
  *is_complete = found != requests + count ? 1 : 0;
  *at = *is_complete != 0 ? static_cast<int>(found - requests) : kUndefined;
  return kSuccess;
}

int test(Request* request, int* is_complete, Status* status) {
  int at = 0;
  return test_any(1, request, &at, is_complete, status);
}

int get_no_elements(const Status*, Datatype, Count* out) {
  *out = 0;
  return kSuccess;
}

class Background : public testing::Test {
 protected:
  Background() {
    calls().Irecv = start_receive;
    calls().Test = test;
    calls().Testany = test_any;
    calls().Get_elements_x = get_no_elements;
    calls().Cancel = [](Request*) { return kSuccess; };
    calls().Request_free = calls().Cancel;
    comm_.world_ranks = {0};
    comm_.addresses.set({0});
    complete = kRequestNull;
    started = 0;
    noticed = 0;
  }
  ~Background() override {
    set_stuck(false);
    stop_background();
    for (host::Request* each : requests_) {
      host::cancel(*each);
      host::free(each);
    }
  }

  // A receive with a notice, so that the thread has a request to test.
  void receive() {
    static host::Notice notice{[](host::Notice*) { ++noticed; }};
    host::Request* request = nullptr;
    ASSERT_EQ(host::receive(comm_, nullptr, 0, 0, 0, request), coll::Code::kDone);
    host::on_complete(*request, notice);
    requests_.push_back(request);
  }

  bool is_complete_at_owner() const { return host::is_complete(*requests_.front()); }

  // The thread itself has tested requests.
  static void wait_for_thread() {
    const int before = tests;
    ASSERT_TRUE(await([&] { return tests != before; }));
  }

 private:
  Communicator comm_;
  std::vector<host::Request*> requests_;
};

TEST_F(Background, EndsAlsoIfItsThreadIsStuckInMpi) {
  receive();
  start_background();
  set_stuck(true);
  ASSERT_TRUE(await([] { return has_stuck_call; }));
  bool has_ended = false;
  std::thread exiting([&] {
    stop_background();
    const std::lock_guard lock(mutex);
    has_ended = true;
    changed.notify_all();
  });
  EXPECT_TRUE(await([&] { return has_ended; }));
  set_stuck(false);
  exiting.join();
}

// It writes to the program's memory, which the program may have write-protected to learn of that.
TEST_F(Background, LeavesSignalsToTheProgramButThoseOfItsOwnAccesses) {
  receive();
  start_background();
  wait_for_thread();
  const std::lock_guard lock(mutex);
  EXPECT_EQ(sigismember(&blocked, SIGUSR1), 1);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE}) EXPECT_EQ(sigismember(&blocked, own), 0);
}

TEST_F(Background, GoesOnWithoutAThreadIfNoneCanStart) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 48), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(start_background());
  EXPECT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("cepheus: no thread for background progress: "));
  receive();
  complete = started;
  (void)run_notices();
  EXPECT_EQ(noticed, 1);
}

TEST_F(Background, IsNotJoinedInChildrenThatTheProgramForks) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts a thread: use another build";
#endif
  receive();
  start_background();
  wait_for_thread();
  const pid_t child = fork();
  if (child == 0) {
    // It takes the memory, and so the id, of the thread that the child has not.
    std::thread([] { pause(); }).detach();
    stop_background();
    _exit(0);
  }
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  pollfd end{fd, POLLIN, 0};
  if (poll(&end, 1, 10'000) != 1) kill(child, SIGKILL);
  close(fd);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A peer's large message to this rank may wait for it, as while the switch registers a group.
TEST_F(Background, LetsMpiProgressAlsoWithoutARequestToTest) {
  static int probes;
  probes = 0;
  calls().Iprobe = [](int, int, Comm, int*, Status*) {
    ++probes;
    return kSuccess;
  };
  host::progress();
  EXPECT_EQ(probes, 1);
}

// Each call of MPI moves all of MPI's messages, too, which takes longer than a look at our own.
TEST_F(Background, TestsFewRequestsByOneCallOfMpiAndAllInTurn) {
  constexpr int kRequests = 1000, kMost = 8;
  calls().Iprobe = [](int, int, Comm, int*, Status*) {
    ADD_FAILURE() << "the test has let MPI progress";
    return kSuccess;
  };
  for (int i = 0; i < kRequests; ++i) receive();
  for (const Request each : {kRequests, 1, kRequests / 2}) {
    complete = each;
    const int before = noticed;
    int looks = 0;
    for (; noticed == before && looks <= kRequests / kMost; ++looks) {
      tests = tested = 0;
      host::progress();
      EXPECT_EQ(tests, 1);
      EXPECT_LE(tested, kMost);
    }
    EXPECT_EQ(noticed, before + 1) << "request " << each;
  }
}

// As MPI may report it: without its place among those tested.
TEST_F(Background, FindsTheFailedRequestThatMpiDoesNotName) {
  receive();
  receive();
  receive();
  complete = 2;
  calls().Testany = [](int, Request*, int*, int*, Status*) { return kErrOther; };
  (void)run_notices();
  EXPECT_EQ(noticed, 1);
}

// Its owner has tested it before, and so has no handle of MPI's any more.
TEST_F(Background, GivesNoticeOfARequestThatItsOwnerHasTested) {
  receive();
  complete = 1;
  EXPECT_TRUE(is_complete_at_owner());
  complete = kRequestNull;
  (void)run_notices();
  EXPECT_EQ(noticed, 1);
}

}  // namespace
}  // namespace cepheus::pmpi
