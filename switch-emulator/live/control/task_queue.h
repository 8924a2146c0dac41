// Tasks of other threads for the datapath's thread, between two of its rounds.
//
// The datapath never waits for the posting thread: if that is writing the list at the moment, the
// datapath reads it a round later.
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
  // kUnavailable: no descriptor is left.
  static wire::Result<std::unique_ptr<TaskQueue>> create();

  // Readable while there may be tasks.
  int fd() const { return notice_.get(); }
  // Makes it readable; from any thread or a signal handler.
  void nudge() const;

  // From any thread: runs `task` on the datapath's thread soon.
  void post(std::function<void()> task);
  // From any thread but the datapath's: runs `task` there, and waits for its end.
  template <typename Task>
  void run(Task&& task);

  // On the datapath's thread: runs the posted tasks.
  void serve();

 private:
  explicit TaskQueue(fabric::UniqueFd notice) : notice_(std::move(notice)) {}

  fabric::UniqueFd notice_;
  std::mutex mutex_;  // guards posted_
  std::vector<std::function<void()>> posted_;
};

template <typename Task>
void TaskQueue::run(Task&& task) {
  // Shared, because the fulfilling thread may still be inside the promise when the waiting thread
  // goes on.
  const auto done = std::make_shared<std::promise<void>>();
  post([&task, done] {
    task();
    done->set_value();
  });
  done->get_future().wait();
}

}  // namespace cepheus::live
