#include "libmcast/process.h"

#include <pthread.h>

#include "libmcast/group.h"

namespace cepheus::mcast {
namespace {

constinit std::atomic<std::uint64_t> forks{0};
constinit std::atomic<Process*> current_process{nullptr};

[[maybe_unused]] const int kForksAreCounted =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

Process& Process::instance() {
  const std::uint64_t generation = forks.load(std::memory_order_relaxed);
  Process* known = current_process.load(std::memory_order_acquire);
  while (known == nullptr || known->fork_generation_ != generation) {
    auto* const fresh = new Process(generation, known);
    if (current_process.compare_exchange_strong(known, fresh, std::memory_order_acq_rel))
      return *fresh;
    delete fresh;  // another thread was first
  }
  return *known;
}

void Process::add(Group& group) {
  const std::lock_guard lock(groups_mutex_);
  groups_.emplace(group.number(), &group);
}

void Process::remove(Group& group) {
  const std::lock_guard lock(groups_mutex_);
  groups_.erase(group.number());
}

Group* Process::find_group(std::uint32_t number) {
  const std::lock_guard lock(groups_mutex_);
  const auto at = groups_.find(number);
  return at == groups_.end() ? nullptr : at->second;
}

}  // namespace cepheus::mcast
