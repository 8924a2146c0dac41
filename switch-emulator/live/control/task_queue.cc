#include "switch-emulator/live/control/task_queue.h"

#include <sys/eventfd.h>

namespace cepheus::live {

wire::Result<std::unique_ptr<TaskQueue>> TaskQueue::create() {
  fabric::UniqueFd notice(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!notice.is_open()) {
    return wire::call_failed("can't make an eventfd");
  }
  return std::unique_ptr<TaskQueue>(new TaskQueue(std::move(notice)));
}

void TaskQueue::nudge() const { eventfd_write(notice_.get(), 1); }

void TaskQueue::post(std::function<void()> task) {
  {
    const std::lock_guard guard(mutex_);
    posted_.push_back(std::move(task));
  }
  nudge();
}

void TaskQueue::serve() {
  std::vector<std::function<void()>> tasks;
  {
    const std::unique_lock guard(mutex_, std::try_to_lock);
    if (!guard.owns_lock()) return;
    eventfd_t count = 0;
    eventfd_read(notice_.get(), &count);  // under the lock, because a later post notifies later
    tasks.swap(posted_);
  }
  for (const auto& task : tasks) task();
}

}  // namespace cepheus::live
