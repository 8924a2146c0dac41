// What all contexts of a process share: who is open, groups by number, the budget of eager buffers,
// forks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "libmcast/context.h"
#include "libmcast/memory.h"

namespace cepheus::mcast {

class Process {
 public:
  // Made at the first call and never destroyed: contexts may outlive static destructors.
  static Process& instance();

  // A device port is opened once: opening it again gives the same context, counted.
  // MCAST_ERR_INVALID if the settings differ from those it was opened with.
  Expected<Context*> open(const ContextConfig& config);
  void close(Context& context);

  std::uint32_t next_group_number() { return next_group_.fetch_add(1) + 1; }
  void add(Group& group);
  void remove(Group& group);
  Group* find_group(std::uint32_t number);

  MemoryBudget& eager_budget() { return eager_budget_; }
  // Grows by one in each forked child.
  std::uint64_t fork_generation() const { return forks_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::unique_ptr<Context> context;
    unsigned users;
  };

  Process();

  std::mutex contexts_mutex_;  // also while one is opened or closed
  std::vector<Entry> contexts_;
  std::mutex groups_mutex_;
  std::unordered_map<std::uint32_t, Group*> groups_;
  std::atomic<std::uint32_t> next_group_{0};
  MemoryBudget eager_budget_;
  std::atomic<std::uint64_t> forks_{0};
};

}  // namespace cepheus::mcast
