// Work that other threads want done on the datapath's thread, between two of its rounds.
//
// The datapath never waits for whoever posts: where the list is being written at that moment, it
// looks again a round later.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"

namespace cepheus::live {

class TaskQueue {
 public:
  // kUnavailable: no descriptor to be had.
  static wire::Result<std::unique_ptr<TaskQueue>> create();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Readable while there may be work.
  int fd() const { return notice_.get(); }
  // Makes it readable; from any thread or a signal handler.
  void nudge() const;

  // From any thread: has `task` run soon.
  void post(std::function<void()> task);
  // From any thread but the datapath's: has `task` run, and waits for its end.
  template <typename Task>
  void run(Task&& task);

  // On the datapath's thread: runs what was posted.
  void serve();

 private:
  explicit TaskQueue(fabric::UniqueFd notice) : notice_(std::move(notice)) {}

  fabric::UniqueFd notice_;
  std::mutex mutex_;  // guards posted_
  std::vector<std::function<void()>> posted_;
};

template <typename Task>
void TaskQueue::run(Task&& task) {
  // Shared: who fulfils a promise may still be in it when who waits for it goes on.
  const auto done = std::make_shared<std::promise<void>>();
  post([&task, done] {
    task();
    done->set_value();
  });
  done->get_future().wait();
}

}  // namespace cepheus::live
