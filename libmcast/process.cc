#include "libmcast/process.h"

#include <pthread.h>

#include <algorithm>

namespace cepheus::mcast {
namespace {

// What a second opener asks for is what the first one got.
bool agrees(const ContextConfig& asked, const Context& open) {
  const ContextConfig& got = open.config();
  const bool same_mtu =
      asked.device.path_mtu == 0 || asked.device.path_mtu == open.device().path_mtu();
  return same_mtu && asked.mrp_port == got.mrp_port &&
         asked.register_timeout == got.register_timeout && asked.pool.base == got.pool.base &&
         asked.pool.length == got.pool.length && asked.max_eager_memory == got.max_eager_memory &&
         asked.progress_timeout == got.progress_timeout;
}

bool is_same_port(const ContextConfig& asked, const Context& open) {
  const Device& device = open.device();
  return (asked.device.name.empty() || asked.device.name == device.name()) &&
         (asked.device.gid_index < 0 || asked.device.gid_index == device.gid_index());
}

}  // namespace

Process& Process::instance() {
  static Process* const process = new Process;
  return *process;
}

Process::Process() {
  pthread_atfork(
      [] {
        instance().contexts_mutex_.lock();
        instance().groups_mutex_.lock();
      },
      [] {
        instance().groups_mutex_.unlock();
        instance().contexts_mutex_.unlock();
      },
      [] {
        instance().forks_.fetch_add(1, std::memory_order_relaxed);
        instance().groups_mutex_.unlock();
        instance().contexts_mutex_.unlock();
      });
}

Expected<Context*> Process::open(const ContextConfig& config) {
  const std::lock_guard lock(contexts_mutex_);
  for (Entry& entry : contexts_) {
    if (!entry.context->is_ours() || !is_same_port(config, *entry.context)) continue;
    if (!agrees(config, *entry.context)) {
      return fail(MCAST_ERR_INVALID, "device " + entry.context->device().name() +
                                         " is open in this process with other settings: use the "
                                         "same everywhere");
    }
    ++entry.users;
    return entry.context.get();
  }
  auto context = Context::create(config);
  if (!context) return tl::unexpected(context.error());
  contexts_.push_back({std::move(*context), 1});
  return contexts_.back().context.get();
}

void Process::close(Context& context) {
  std::unique_lock lock(contexts_mutex_);
  const auto find = [&] {
    return std::find_if(contexts_.begin(), contexts_.end(),
                        [&](const Entry& e) { return e.context.get() == &context; });
  };
  // The last user takes its groups along. Their callbacks may call anything, so they run without
  // the lock, and whoever opens the context meanwhile keeps it and the groups made since.
  for (auto at = find(); at != contexts_.end(); at = find()) {
    if (at->users == 1 && context.is_ours() && context.has_groups()) {
      const std::uint32_t last = next_group_.load();
      lock.unlock();
      context.destroy_groups(last);
      lock.lock();
      continue;
    }
    if (--at->users > 0) return;
    // In the child of a fork it belongs to the parent: it is forgotten, not taken down.
    if (!context.is_ours()) static_cast<void>(at->context.release());
    contexts_.erase(at);
    return;
  }
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
