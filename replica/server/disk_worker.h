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
    std::optional<StoredReplica> save;
    ChunkBitmap flush{};     // where the data may differ from the disk
    std::uint64_t link = 0;  // that waits for the answer
    AnswerMessage answer{};
    Digests digests{};  // the request's, and what comes of it
  };
  // What gathered while the disk was busy, done at once.
  struct Batch {
    std::optional<StoredReplica> save;  // the last one is enough
    ChunkBitmap flush;                  // of all jobs
    std::vector<Job> jobs;

    bool empty() const { return jobs.empty() && !save && flush.chunks() == 0; }
  };
  // Does what the batch needs; an errno.
  using Work = std::function<int(Batch&)>;

  // `wake` tells the server that there is something to take; on the worker's thread.
  DiskWorker(Work work, std::function<void()> wake);
  ~DiskWorker();  // finishes

  void submit(Job job);
  // The link has gone: its answers that wait need not be made. Saves and flushes are done all the same.
  void forget(std::uint64_t link);
  // Whether all that was submitted is done, and taken.
  bool is_idle();
  // Does what was submitted, and takes nothing more. The disk's first error, or 0.
  int finish();
  // Done ones, in the order of coming. `error`: of the disk, the first one.
  std::vector<Job> take(int& error);

 private:
  void run();

  const Work work_;
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Batch waiting_;
  std::vector<Job> done_;
  int error_ = 0;
  bool is_working_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace cepheus::replica
