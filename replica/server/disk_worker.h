// A thread that waits for the disk instead of the server: an answer is sent when its content is
// durable.
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
    ChunkBitmap flush{};     // chunks that may differ from the disk
    std::uint64_t link = 0;  // connection of the answer
    AnswerMessage answer{};
    Digests digests{};  // the request's, and its results
  };
  // Jobs that gathered while the disk was busy, done at once.
  struct Batch {
    std::optional<StoredReplica> save;  // the last one is enough
    ChunkBitmap flush;                  // of all jobs
    std::vector<Job> jobs;

    bool empty() const { return jobs.empty() && !save && flush.chunks() == 0; }
  };
  // Does the batch's disk work; an errno.
  using Work = std::function<int(Batch&)>;

  // `wake` tells the server that jobs are done; on the worker's thread.
  DiskWorker(Work work, std::function<void()> wake);
  ~DiskWorker();  // finishes

  void submit(Job job);
  // The connection has closed: its waiting answers are dropped. Saves and flushes are still done.
  void forget(std::uint64_t link);
  // Whether all submitted jobs are done and taken.
  bool is_idle();
  // Does all submitted jobs, and accepts no more. The disk's first error, or 0.
  int finish();
  // Done jobs, in the order of submission. `error`: the disk's first one.
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
