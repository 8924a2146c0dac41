#include "nic-emulator/verbs/memory/memory_guard.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

namespace {

// Runs once, between the guard's query of the handler and its next step.
std::atomic<void (*)()> after_question{nullptr};

}  // namespace

// Replaces libc's function.
extern "C" int sigaction(int signal, const struct sigaction* set, struct sigaction* old) noexcept {
  using Sigaction = int (*)(int, const struct sigaction*, struct sigaction*);
  static const auto libc = reinterpret_cast<Sigaction>(::dlsym(RTLD_NEXT, "sigaction"));
  const int outcome = libc(signal, set, old);
  if (signal == SIGSEGV && set == nullptr) {
    if (void (*const then)() = after_question.exchange(nullptr)) then();
  }
  return outcome;
}

namespace cepheus::verbs {
namespace {

constexpr std::size_t kPage = 4096;

class Guarded : public ::testing::Test {
 protected:
  Guarded() {
    pages_ = static_cast<char*>(
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(pages_, MAP_FAILED);
    // A sanitizer's own handler would end the process at protected memory.
    ::sigaction(SIGSEGV, nullptr, &before_);
    ::signal(SIGSEGV, SIG_DFL);
    install_memory_guard();
  }
  ~Guarded() override {
    ::sigaction(SIGSEGV, &before_, nullptr);
    ::munmap(pages_, 2 * kPage);
  }

 public:
  // Writes to [0, bytes), guarded.
  bool write(std::size_t bytes) { return end_of_write(bytes) == AccessEnd::kDone; }
  AccessEnd end_of_write(std::size_t bytes) {
    struct Work {
      char* to;
      std::size_t bytes;
    } work{pages_, bytes};
    return guard_memory(
        pages_, bytes,
        [](void* w) {
          // By the byte: a memcpy may begin anywhere.
          auto* const it = static_cast<Work*>(w);
          for (std::size_t i = 0; i < it->bytes; ++i) {
            *const_cast<volatile char*>(it->to + i) = 'x';
          }
        },
        &work);
  }

  char* pages_ = nullptr;

 private:
  struct sigaction before_ {};
};

TEST_F(Guarded, AnAccessEndsWhereMemoryDoes) {
  EXPECT_TRUE(write(2 * kPage));
  std::memset(pages_, 0, kPage);
  ::munmap(pages_ + kPage, kPage);
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(write(2 * kPage));
  EXPECT_EQ(pages_[kPage - 1], 'x');
  EXPECT_TRUE(write(kPage));
}

TEST_F(Guarded, AForkedChildInstallsTheHandlerThatAnotherThreadWasInstalling) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) install_memory_guard();
  });
  bool ended_well = true;
  for (int i = 0; i < 100 && ended_well; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(10);  // ends a child that waits for the other thread
      ::signal(SIGSEGV, SIG_DFL);
      install_memory_guard();
      ::munmap(pages_, 2 * kPage);
      ::_exit(write(1) ? 1 : 0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    ended_well = status == 0;
  }
  stop = true;
  other.join();
  EXPECT_TRUE(ended_well);
}

TEST_F(Guarded, EachFaultEndsTheAccessForItsReason) {
  ::mprotect(pages_, kPage, PROT_READ);
  EXPECT_EQ(end_of_write(1), AccessEnd::kProtected);
  ::munmap(pages_, kPage);
  EXPECT_EQ(end_of_write(1), AccessEnd::kUnmapped);
  const int file = ::memfd_create("truncated", 0);
  ASSERT_EQ(::ftruncate(file, kPage), 0);
  ASSERT_EQ(::mmap(pages_, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0), pages_);
  EXPECT_EQ(end_of_write(1), AccessEnd::kDone);
  ASSERT_EQ(::ftruncate(file, 0), 0);
  EXPECT_EQ(end_of_write(1), AccessEnd::kTruncated);
  ::close(file);
}

std::atomic<int> faults{0};
void allow_the_page(int, siginfo_t* info, void*) {
  ++faults;
  const auto page = reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(kPage - 1);
  ::mprotect(reinterpret_cast<void*>(page), kPage, PROT_READ | PROT_WRITE);
}

// As programs do that write-protect their memory to learn of changes.
TEST_F(Guarded, AProgramsHandlerMayAllowAnAccessToProtectedMemory) {
  struct sigaction action {
  }, before{};
  faults = 0;
  action.sa_sigaction = allow_the_page;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, &before);
  install_memory_guard();
  ::mprotect(pages_, 2 * kPage, PROT_READ);
  EXPECT_EQ(end_of_write(2 * kPage), AccessEnd::kDone);
  EXPECT_EQ(faults, 2);

  action.sa_sigaction = [](int, siginfo_t*, void*) { ++faults; };  // allows nothing
  ::sigaction(SIGSEGV, &action, nullptr);
  install_memory_guard();
  ::mprotect(pages_, kPage, PROT_READ);
  EXPECT_EQ(end_of_write(1), AccessEnd::kProtected);
  EXPECT_GT(faults, 2);
  ::sigaction(SIGSEGV, &before, nullptr);
}

int handled = 0;
struct sigaction before_mine;

// They end the process: returning would repeat the fault.
void mine(int) { ::_exit(41); }
void other(int) { ::_exit(42); }
// A program's handler in front of the one that it found.
void passes_on(int signal, siginfo_t* info, void* context) {
  if (++handled > 1) ::_exit(43);
  before_mine.sa_sigaction(signal, info, context);
}

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(SIGSEGV, &action, &before_mine);
}
// ... and calls the NIC once more.
void use_handler(void (*handler)(int)) {
  set_handler(handler);
  install_memory_guard();
}
void use_handler_that_passes_on() {
  struct sigaction action {};
  action.sa_sigaction = passes_on;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, &before_mine);
  install_memory_guard();
}

void fault() {
  static volatile std::uintptr_t nowhere = 16;
  *reinterpret_cast<volatile char*>(nowhere) = 1;
}

using GuardDeathTest = Guarded;

TEST_F(GuardDeathTest, AProgramsOwnFaultReachesItsHandler) {
  const auto program = [](bool guard_first) {
    if (guard_first) install_memory_guard();
    use_handler(mine);
    fault();
  };
  EXPECT_EXIT(program(true), ::testing::ExitedWithCode(41), "");
  EXPECT_EXIT(program(false), ::testing::ExitedWithCode(41), "");
}

TEST_F(GuardDeathTest, TheHandlerThatWasSetLastIsCalled) {
  const auto program = [] {
    use_handler(mine);
    use_handler(other);
    fault();
  };
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(42), "");
}

TEST_F(GuardDeathTest, AHandlerThatPassesOnReachesTheOneBefore) {
  const auto program = [] {
    use_handler(mine);
    use_handler_that_passes_on();
    fault();
  };
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(41), "");
}

TEST_F(GuardDeathTest, AHandlerThatIsSetDuringTheGuardsInstallationIsCalled) {
  const auto program = [] {
    set_handler(mine);
    after_question = [] { set_handler(other); };
    install_memory_guard();
    fault();
  };
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(42), "");
}

TEST_F(GuardDeathTest, AHandlerThatIsUsedUpForOneSignalServesTheOther) {
  const auto program = [] {
    struct sigaction action {};
    action.sa_handler = [](int signal) {
      if (signal == SIGBUS) ::_exit(41);
    };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (const int signal : {SIGSEGV, SIGBUS}) ::sigaction(signal, &action, nullptr);
    install_memory_guard();
    ::raise(SIGSEGV);
    ::raise(SIGBUS);
  };
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(41), "");
}

// It does not know the page, and there is no handler that does.
TEST_F(GuardDeathTest, AnAccessThatAHandlerPassesOnToNobodyEnds) {
  const auto program = [this] {
    use_handler(SIG_DFL);
    use_handler_that_passes_on();
    ::mprotect(pages_, kPage, PROT_READ);
    if (end_of_write(1) != AccessEnd::kProtected) ::_exit(44);
    set_handler(mine);
    fault();  // as if nothing had been
  };
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(41), "");
}

std::atomic<bool> is_querying{false}, has_returned{false};

// One thread is about to install the guard. Another one's call must not return before that.
TEST_F(GuardDeathTest, IsInstalledWhenAnyCallReturns) {
  const auto program = [this] {
    set_handler(SIG_DFL);
    after_question = [] {
      is_querying = true;
      const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
      while (!has_returned && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    };
    std::thread slow([] { install_memory_guard(); });
    while (!is_querying) std::this_thread::yield();
    install_memory_guard();
    ::munmap(pages_, 2 * kPage);
    const bool was_written = write(1);  // ends the process if the guard is not there
    has_returned = true;
    slow.join();
    ::_exit(was_written ? 44 : 45);
  };
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(45), "");
}

// A signal handler interrupts an access and has one of its own.
TEST_F(Guarded, AnAccessWithinAnotherLeavesThatOneGuarded) {
  struct Work {
    Guarded* test;
    bool inner_ended;
    char* beyond;
  };
  char* const other =
      static_cast<char*>(::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(other, MAP_FAILED);
  for (const bool inner_ends : {true, false}) {
    if (!inner_ends) ::mprotect(pages_, kPage, PROT_NONE);
    Work work{this, !inner_ends, other};
    EXPECT_EQ(guard_memory(
                  other, kPage,
                  [](void* w) {
                    Work& it = *static_cast<Work*>(w);
                    it.inner_ended = it.test->write(1);
                    *const_cast<volatile char*>(it.beyond) = 'x';
                  },
                  &work),
              AccessEnd::kProtected);
    EXPECT_EQ(work.inner_ended, inner_ends);
  }
  ::munmap(other, kPage);
}

template <int kNumber>
void numbered(int) {
  ::_exit(kNumber);
}

TEST_F(GuardDeathTest, TheGuardStaysAfterVeryManyHandlers) {
  const auto program = [this](bool different) {
    const std::array<void (*)(int), 10> handlers = {
        numbered<0>, numbered<1>, numbered<2>, numbered<3>, numbered<4>,
        numbered<5>, numbered<6>, numbered<7>, numbered<8>, numbered<9>};
    for (std::size_t i = 0; i < handlers.size(); ++i) {
      use_handler(different ? handlers[i] : mine);
      if (different) continue;
      use_handler(SIG_DFL);
    }
    ::munmap(pages_, 2 * kPage);
    if (write(1)) ::_exit(44);
    use_handler(mine);
    fault();
  };
  EXPECT_EXIT(program(false), ::testing::ExitedWithCode(41), "");
  EXPECT_EXIT(program(true), ::testing::ExitedWithCode(41), "");
}

TEST_F(GuardDeathTest, WithoutAHandlerAFaultEndsTheProcess) {
  const auto program = [](bool sent) {
    use_handler(SIG_DFL);
    sent ? static_cast<void>(::raise(SIGSEGV)) : fault();
  };
  EXPECT_EXIT(program(false), ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(program(true), ::testing::KilledBySignal(SIGSEGV), "");
}

// A handler that interrupts an access has faults of its own.
TEST_F(GuardDeathTest, AFaultBesideTheBytesIsTheProgramsOwn) {
  const auto program = [this] {
    use_handler(mine);
    guard_memory(
        pages_, kPage, [](void*) { fault(); }, nullptr);
  };
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(41), "");
}

}  // namespace
}  // namespace cepheus::verbs
