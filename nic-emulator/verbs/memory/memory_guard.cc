// guard_memory() records an Attempt in the thread and runs the work. A fault within the attempt's
// bytes jumps back to it with the reason: unmapped (SEGV_MAPERR), truncated (BUS_ADRERR),
// protected. For a protected page the program's handler runs first, at most 8 times in a row for
// one address.
//
// Faults elsewhere go to the handlers that ours has replaced, newest first. A mark in the unused
// end of siginfo_t keeps the place in that chain, for handlers that call their predecessor. The end
// of the chain is the default action.
//
// Bounds: kMostReplaced handlers of a signal. A handler's record is never freed. on_fault()
// allocates nothing and takes no lock. Source: sigaction(2).
#include "nic-emulator/verbs/memory/memory_guard.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace cepheus::verbs {
namespace {

constexpr std::array kSignals{SIGSEGV, SIGBUS};

struct Attempt {
  const std::uint8_t* memory;
  std::size_t bytes;
  Attempt* outer;                 // an attempt that this one's signal handler has interrupted
  std::uintptr_t last_fault = 0;  // for the program's handler
  int repeats = 0;                // of it, in a row
  Attempt* judged_before = nullptr;
  sigjmp_buf back;
};

// In the memory that every thread has from its start: a handler must not allocate.
[[gnu::tls_model("initial-exec")]] thread_local Attempt* attempt = nullptr;
// The one whose fault the program's handler is about to judge.
[[gnu::tls_model("initial-exec")]] thread_local Attempt* judged = nullptr;

// A handler that ours has replaced. It is immutable and permanent: a thread may be about to call it
// while another one installs ours anew.
struct Handler {
  int signal;
  struct sigaction action;
  std::atomic<bool> is_used_up{false};  // SA_RESETHAND: it was called
  Handler* next;

  bool is_default() const { return action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN; }
};
Handler* all_handlers = nullptr;  // each one once

// Handlers of a signal that ours precedes, oldest first. A program's handler that was set after ours
// may call ours as its predecessor: then the next older one is called.
constexpr int kMostReplaced = 8;
struct Replaced {
  std::array<std::atomic<Handler*>, kMostReplaced> handlers{};
  std::atomic<int> count{0};
};
std::array<Replaced, kSignals.size()> all_replaced;  // by kSignals

Replaced& replaced_of(int signal) { return all_replaced[signal == kSignals[0] ? 0 : 1]; }

// A siginfo_t ends in bytes that the kernel clears. There we note which of the replaced ones were called.
constexpr std::uint32_t kMark = 0x43450000;
constexpr std::size_t kMarkOffset = sizeof(siginfo_t) - sizeof kMark;

// Number of the handler that was called for this signal last; kMostReplaced or more: none was.
std::uint32_t last_had_by(const siginfo_t* info) {
  std::uint32_t mark = 0;
  std::memcpy(&mark, reinterpret_cast<const char*>(info) + kMarkOffset, sizeof mark);
  return mark - kMark;
}

// Index in `replaced` of the handler to call for this signal; below 0: none is left.
int next_handler(const Replaced& replaced, const siginfo_t* info) {
  const int count = replaced.count.load(std::memory_order_acquire);
  const std::uint32_t had = last_had_by(info);
  return (had < kMostReplaced ? static_cast<int>(had) : count) - 1;
}

void mark_as_had_by(int which, siginfo_t* info) {
  const std::uint32_t mark = kMark + static_cast<std::uint32_t>(which);
  std::memcpy(reinterpret_cast<char*>(info) + kMarkOffset, &mark, sizeof mark);
}

// The default action: the faulting instruction runs again, and the kernel ends the process.
void die_of(int signal, const siginfo_t* info) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  if (info->si_code <= 0) ::raise(signal);  // a process sent it: nothing would run again
}

// The handler to call for this signal, and its index; null: none is left.
Handler* find_handler(int signal, const siginfo_t* info, int& which) {
  const Replaced& replaced = replaced_of(signal);
  which = next_handler(replaced, info);
  if (which < 0) return nullptr;
  return replaced.handlers[static_cast<std::size_t>(which)].load(std::memory_order_acquire);
}

void pass_on(int signal, siginfo_t* info, void* context) {
  int which = 0;
  Handler* const found = find_handler(signal, info, which);
  if (found == nullptr) return die_of(signal, info);
  Handler& handler = *found;
  const struct sigaction& action = handler.action;
  if (action.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (handler.is_default()) return die_of(signal, info);
  if ((action.sa_flags & SA_RESETHAND) != 0 && handler.is_used_up.exchange(true)) {
    return die_of(signal, info);
  }
  sigset_t blocked = action.sa_mask;
  if ((action.sa_flags & SA_NODEFER) == 0) ::sigaddset(&blocked, signal);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  mark_as_had_by(which, info);
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Lets the program's handler allow an access to memory that is protected. False: it has none, or it
// has not allowed the access. An access that repeats its fault may have met a thread that protects
// the memory again.
bool is_allowed_by_program(Attempt& at, std::uintptr_t where, int signal, siginfo_t* info,
                           void* context) {
  constexpr int kMostRepeats = 8;
  int which = 0;
  const Handler* const handler = find_handler(signal, info, which);
  const bool is_there = handler != nullptr && !handler->is_default() && !handler->is_used_up;
  at.repeats = where == at.last_fault ? at.repeats + 1 : 0;
  at.last_fault = where;
  if (!is_there || at.repeats == kMostRepeats) return false;
  attempt = at.outer;  // the handler's own faults are the program's
  at.judged_before = std::exchange(judged, &at);
  pass_on(signal, info, context);
  judged = at.judged_before;
  attempt = &at;
  return true;
}

// How a fault ends the attempt. kDone: not, for it is not within its bytes, or has another reason.
AccessEnd end_of(const Attempt* at, int signal, const siginfo_t* info) {
  const auto where = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (at == nullptr || where - reinterpret_cast<std::uintptr_t>(at->memory) >= at->bytes) {
    return AccessEnd::kDone;
  }
  const int code = info->si_code;
  if (signal == SIGBUS) return code == BUS_ADRERR ? AccessEnd::kTruncated : AccessEnd::kDone;
  if (code == SEGV_MAPERR) return AccessEnd::kUnmapped;
  return code > 0 ? AccessEnd::kProtected : AccessEnd::kDone;
}

[[noreturn]] void end_attempt(Attempt& at, AccessEnd end, const void* context) {
  attempt = at.outer;
  // As before the fault: another caller of this handler may have blocked more signals.
  ::pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
  siglongjmp(at.back, static_cast<int>(end));
}

// Whether the program's handlers have passed on the fault of `judged`, and the default action is
// all that is left.
bool is_judged_by_nobody(int signal, const siginfo_t* info) {
  if (last_had_by(info) >= kMostReplaced || end_of(judged, signal, info) == AccessEnd::kDone) {
    return false;
  }
  int which = 0;
  const Handler* const left = find_handler(signal, info, which);
  return left == nullptr || left->is_default();
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Attempt* const at = attempt;
  // Without an attempt, or outside its bytes, the fault is the program's, perhaps in a handler that
  // interrupted us.
  const AccessEnd end = end_of(at, signal, info);
  if (end == AccessEnd::kDone) {
    if (!is_judged_by_nobody(signal, info)) return pass_on(signal, info, context);
    Attempt& over = *judged;
    judged = over.judged_before;
    end_attempt(over, AccessEnd::kProtected, context);
  }
  const auto where = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (end == AccessEnd::kProtected && is_allowed_by_program(*at, where, signal, info, context)) {
    return;
  }
  end_attempt(*at, end, context);
}

// libc leaves the bits behind the existing signals undefined.
bool is_same(const struct sigaction& a, const struct sigaction& b) {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (::sigismember(&a.sa_mask, signal) != ::sigismember(&b.sa_mask, signal)) return false;
  }
  return a.sa_sigaction == b.sa_sigaction && a.sa_flags == b.sa_flags;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_fault;
}

// Null: no memory.
Handler* find_or_add(int signal, const struct sigaction& action) {
  for (Handler* each = all_handlers; each != nullptr; each = each->next) {
    if (each->signal == signal && is_same(each->action, action)) return each;
  }
  auto* const added = new (std::nothrow) Handler{signal, action, false, all_handlers};
  if (added != nullptr) all_handlers = added;
  return added;
}

// If the program has restored an older handler, later ones are dropped. A program with very many
// handlers loses the newest but one: the guard stays.
void note_replaced(int signal, const struct sigaction& action) {
  Replaced& replaced = replaced_of(signal);
  Handler* const handler = find_or_add(signal, action);
  if (handler == nullptr) return;
  handler->is_used_up = false;
  int count = replaced.count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    if (replaced.handlers[static_cast<std::size_t>(i)] != handler) continue;
    return replaced.count.store(i + 1, std::memory_order_release);
  }
  if (count == kMostReplaced) --count;
  replaced.handlers[static_cast<std::size_t>(count)].store(handler, std::memory_order_release);
  replaced.count.store(count + 1, std::memory_order_release);
}

// The existing handler is noted first: a fault may come at once. If the program sets another one
// between the two calls, that one is noted as well.
void install_handler(int signal) {
  struct sigaction now {};
  if (::sigaction(signal, nullptr, &now) != 0 || is_ours(now)) return;
  note_replaced(signal, now);
  struct sigaction ours {
  }, before{};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  if (::sigaction(signal, &ours, &before) != 0) return;
  if (!is_same(before, now) && !is_ours(before)) note_replaced(signal, before);
}

bool is_installed(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && is_ours(now);
}

}  // namespace

void install_memory_guard() {
  // Memory is registered for each large message, but the handler is rarely replaced in between.
  if (is_installed(SIGSEGV) && is_installed(SIGBUS)) return;
  // The process of the installing thread. A forked child lacks that thread, so this is not a lock.
  static std::atomic<pid_t> installing{0};
  // Signals are blocked while a thread installs, so that it ends soon. Handlers of its own faults
  // may have to run: programs write-protect their memory.
  sigset_t all, old;
  ::sigfillset(&all);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::sigdelset(&all, own);
  ::pthread_sigmask(SIG_SETMASK, &all, &old);
  const pid_t me = ::getpid();
  pid_t before = installing.load(std::memory_order_relaxed);
  while (before == me || !installing.compare_exchange_weak(before, me, std::memory_order_acquire)) {
    if (before == me) ::sched_yield();
    before = installing.load(std::memory_order_relaxed);
  }
  for (const int signal : kSignals) install_handler(signal);
  installing.store(0, std::memory_order_release);
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

AccessEnd guard_memory(const void* memory, std::size_t bytes, void (*work)(void*), void* argument) {
  Attempt mine;
  mine.memory = static_cast<const std::uint8_t*>(memory);
  mine.bytes = bytes;
  mine.outer = attempt;
  if (const int end = sigsetjmp(mine.back, 0); end != 0) return static_cast<AccessEnd>(end);
  attempt = &mine;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  work(argument);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  attempt = mine.outer;
  return AccessEnd::kDone;
}

}  // namespace cepheus::verbs
