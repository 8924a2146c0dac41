// Jobs gather while the disk works: the newest record replaces older ones, ranges to flush are
// joined, and one call of `work` serves all. Results come in order. After the first error no job is
// reported as done, so nothing is answered that may not be durable.
#include "replica/server/disk_worker.h"

#include <iterator>
#include <utility>

namespace cepheus::replica {

DiskWorker::DiskWorker(Work work, std::function<void()> wake)
    : work_(std::move(work)), wake_(std::move(wake)), thread_([this] { run(); }) {}

DiskWorker::~DiskWorker() { finish(); }

int DiskWorker::finish() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  return error_;
}

void DiskWorker::submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (job.save) waiting_.save = std::exchange(job.save, {});
    if (waiting_.flush.chunks() == 0) {
      waiting_.flush = std::exchange(job.flush, {});
    } else if (job.flush.chunks() != 0) {
      waiting_.flush.add(std::exchange(job.flush, {}));
    }
    waiting_.jobs.push_back(std::move(job));
  }
  changed_.notify_one();
}

void DiskWorker::forget(std::uint64_t link) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_.jobs, [&](const Job& job) { return job.link == link; });
}

bool DiskWorker::is_idle() {
  const std::lock_guard lock(mutex_);
  return error_ == 0 && waiting_.empty() && !is_working_ && done_.empty();
}

std::vector<DiskWorker::Job> DiskWorker::take(int& error) {
  const std::lock_guard lock(mutex_);
  error = error_;
  return std::exchange(done_, {});
}

void DiskWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Batch batch = std::exchange(waiting_, {});
    is_working_ = true;
    lock.unlock();
    const int error = work_(batch);
    lock.lock();
    is_working_ = false;
    if (error != 0 && error_ == 0) error_ = error;
    if (error_ == 0) {
      done_.insert(done_.end(), std::make_move_iterator(batch.jobs.begin()),
                   std::make_move_iterator(batch.jobs.end()));
    }
    wake_();
  }
}

}  // namespace cepheus::replica
