// What all contexts of a process share: groups by number, and the budget of eager buffers.
//
// fork() may come at any moment, also while another thread opens or closes a context. So no lock is
// held across it: the one handler counts, and the child makes all this anew when it first needs it.
// (Locks that a handler takes would have to stand before the device's own in every order of
// registration; they don't.)
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "libmcast/memory.h"

namespace cepheus::mcast {

class Group;

class Process {
 public:
  // Of this process: made at the first call, in a forked child again, and never destroyed: contexts
  // may outlive static destructors.
  static Process& instance();

  std::uint32_t next_group_number() { return next_group_.fetch_add(1) + 1; }
  void add(Group& group);
  void remove(Group& group);
  Group* find_group(std::uint32_t number);

  MemoryBudget& eager_budget() { return eager_budget_; }
  // Grows by one in each forked child.
  std::uint64_t fork_generation() const { return fork_generation_; }

 private:
  Process(std::uint64_t fork_generation, const Process* parents)
      : fork_generation_(fork_generation), parents_(parents) {}

  const std::uint64_t fork_generation_;
  const Process* const parents_;  // so that a search for leaks finds it
  std::mutex groups_mutex_;
  std::unordered_map<std::uint32_t, Group*> groups_;
  std::atomic<std::uint32_t> next_group_{0};
  MemoryBudget eager_budget_;
};

}  // namespace cepheus::mcast
