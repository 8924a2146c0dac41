#include "libmcast/forks.h"

#include <pthread.h>

#include <atomic>

namespace cepheus::mcast {
namespace {

constinit std::atomic<std::uint64_t> forks{0};

[[maybe_unused]] const int kForksAreCounted =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint64_t current_fork_generation() { return forks.load(std::memory_order_relaxed); }

}  // namespace cepheus::mcast
