// A thread that waits for the disk, so that the server need not: answers leave when what they tell is durable.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "replica/control/messages.h"
#include "replica/server/record_file.h"

namespace cepheus::replica {

class DiskWorker {
 public:
  struct Job {
    std::optional<StoredReplica> save;  // of several waiting the last one is enough
    ChunkBitmap flush{};                // where the data may differ from the disk
    std::uint64_t link = 0;             // 0: no answer
    AnswerMessage answer{};
    Digests digests{};  // the request's, and what comes of it
  };
  // Does what all of the jobs need; an errno.
  using Work = std::function<int(std::vector<Job>&)>;

  // `wake` tells the server that there is something to take; on the worker's thread.
  DiskWorker(Work work, std::function<void()> wake);
  ~DiskWorker();  // what was submitted is done first

  void submit(Job job);
  // Jobs submitted and not yet taken.
  std::size_t pending() const { return pending_; }
  // Done ones, in the order of coming. `error`: of the disk, the first one.
  std::vector<Job> take(int& error);

 private:
  void run();

  const Work work_;
  const std::function<void()> wake_;
  std::size_t pending_ = 0;  // the server's
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Job> waiting_, done_;
  int error_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace cepheus::replica
