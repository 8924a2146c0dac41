#include "replica/server/disk_worker.h"

#include <iterator>
#include <utility>

namespace cepheus::replica {

DiskWorker::DiskWorker(Work work, std::function<void()> wake)
    : work_(std::move(work)), wake_(std::move(wake)), thread_([this] { run(); }) {}

DiskWorker::~DiskWorker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void DiskWorker::submit(Job job) {
  ++pending_;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  changed_.notify_one();
}

std::vector<DiskWorker::Job> DiskWorker::take(int& error) {
  const std::lock_guard lock(mutex_);
  error = error_;
  pending_ -= done_.size();
  return std::exchange(done_, {});
}

void DiskWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::vector<Job> jobs = std::exchange(waiting_, {});
    lock.unlock();
    const int error = work_(jobs);
    lock.lock();
    if (error != 0 && error_ == 0) error_ = error;
    if (error_ == 0) {
      done_.insert(done_.end(), std::make_move_iterator(jobs.begin()),
                   std::make_move_iterator(jobs.end()));
    }
    wake_();
  }
}

}  // namespace cepheus::replica
