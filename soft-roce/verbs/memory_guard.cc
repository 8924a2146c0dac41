#include "soft-roce/verbs/memory_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace cepheus::verbs {
namespace {

struct Attempt {
  const std::uint8_t* memory;
  std::size_t bytes;
  sigjmp_buf back;
};

// In the memory that every thread has from its start: a handler must not allocate.
[[gnu::tls_model("initial-exec")]] thread_local Attempt* attempt = nullptr;

// The handlers that ours has replaced, oldest first. A program's handler that was set after ours
// may call ours back, as the one before it: then the next older one is meant.
constexpr int kMostReplaced = 8;
std::array<struct sigaction, kMostReplaced> replaced;
std::atomic<int> replaced_count{0};

// A siginfo_t ends in bytes that the kernel clears. There we note which of `replaced` has had it.
constexpr std::uint32_t kMark = 0x43450000;
constexpr std::size_t kMarkOffset = sizeof(siginfo_t) - sizeof kMark;

// The one of `replaced` to be called for this signal; below 0: none is left.
int next_handler(const siginfo_t* info) {
  std::uint32_t mark = 0;
  std::memcpy(&mark, reinterpret_cast<const char*>(info) + kMarkOffset, sizeof mark);
  const int count = replaced_count.load(std::memory_order_acquire);
  const std::uint32_t had = mark - kMark;
  return (had < kMostReplaced ? static_cast<int>(had) : count) - 1;
}

void mark_as_had_by(int which, siginfo_t* info) {
  const std::uint32_t mark = kMark + static_cast<std::uint32_t>(which);
  std::memcpy(reinterpret_cast<char*>(info) + kMarkOffset, &mark, sizeof mark);
}

// What happens without any handler: the faulting instruction runs again, and the kernel ends the
// process.
void die_of(int signal, const siginfo_t* info) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  if (info->si_code <= 0) ::raise(signal);  // a process sent it: nothing would run again
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const int which = next_handler(info);
  if (which < 0) return die_of(signal, info);
  struct sigaction& action = replaced[static_cast<std::size_t>(which)];
  if (action.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return die_of(signal, info);
  const struct sigaction once = action;
  if ((once.sa_flags & SA_RESETHAND) != 0) action.sa_handler = SIG_DFL;
  sigset_t blocked = once.sa_mask;
  if ((once.sa_flags & SA_NODEFER) == 0) ::sigaddset(&blocked, signal);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  mark_as_had_by(which, info);
  if ((once.sa_flags & SA_SIGINFO) != 0) {
    once.sa_sigaction(signal, info, context);
  } else {
    once.sa_handler(signal);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Attempt* const at = attempt;
  const auto where = reinterpret_cast<std::uintptr_t>(info->si_addr);
  // Without an attempt, or beside its bytes, the fault is the program's, perhaps in a handler that
  // interrupted us.
  if (at != nullptr && info->si_code > 0 &&
      where - reinterpret_cast<std::uintptr_t>(at->memory) < at->bytes) {
    attempt = nullptr;
    siglongjmp(at->back, 1);  // the signal is not blocked (SA_NODEFER): no mask to restore
  }
  pass_on(signal, info, context);
}

bool is_same(const struct sigaction& a, const struct sigaction& b) {
  return a.sa_sigaction == b.sa_sigaction && a.sa_flags == b.sa_flags &&
         std::memcmp(&a.sa_mask, &b.sa_mask, sizeof a.sa_mask) == 0;
}

// If the program has put an older handler back, those after it are gone. A program of very many
// handlers loses the newest of them but one: the guard stays.
void note_replaced(const struct sigaction& handler) {
  int count = replaced_count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    if (!is_same(replaced[static_cast<std::size_t>(i)], handler)) continue;
    return replaced_count.store(i + 1, std::memory_order_release);
  }
  if (count == kMostReplaced) replaced_count.store(--count, std::memory_order_release);
  replaced[static_cast<std::size_t>(count)] = handler;
  replaced_count.store(count + 1, std::memory_order_release);
}

void install_handler() {
  struct sigaction now {};
  if (::sigaction(SIGSEGV, nullptr, &now) != 0) return;
  const bool is_ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault;
  if (is_ours) return;
  note_replaced(now);
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigaction(SIGSEGV, &ours, nullptr);
}

}  // namespace

void install_memory_guard() {
  // No lock: a forked child would wait for ever for a thread that it does not have.
  static std::atomic<pid_t> installing{0};  // the process whose thread is at it
  const pid_t me = ::getpid();
  pid_t before = installing.load(std::memory_order_relaxed);
  if (before == me || !installing.compare_exchange_strong(before, me)) return;
  install_handler();
  installing.store(0, std::memory_order_release);
}

bool guard_memory(const void* memory, std::size_t bytes, void (*work)(void*), void* argument) {
  Attempt mine;
  mine.memory = static_cast<const std::uint8_t*>(memory);
  mine.bytes = bytes;
  if (sigsetjmp(mine.back, 0) != 0) return false;
  attempt = &mine;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  work(argument);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  attempt = nullptr;
  return true;
}

}  // namespace cepheus::verbs
