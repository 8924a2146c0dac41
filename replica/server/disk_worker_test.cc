#include "replica/server/disk_worker.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <semaphore>

namespace cepheus::replica {
namespace {

DiskWorker::Job job(std::uint64_t link) {
  DiskWorker::Job job;
  job.link = link;
  return job;
}

// The disk hangs in the first batch until may_go.
struct SlowDisk {
  std::binary_semaphore may_go{0}, began{0};
  int batches = 0;
  void work() {
    if (++batches > 1) return;
    began.release();
    may_go.acquire();
  }
};

TEST(DiskWorker, DoesGatheredJobsAtOnce) {
  SlowDisk disk;
  std::counting_semaphore<8> woken(0);
  std::vector<std::size_t> sizes;
  DiskWorker worker(
      [&](DiskWorker::Batch& batch) {
        sizes.push_back(batch.jobs.size());
        disk.work();
        return 0;
      },
      [&] { woken.release(); });
  worker.submit(job(1));
  disk.began.acquire();
  worker.submit(job(2));
  worker.submit(job(3));
  int error = 0;
  EXPECT_TRUE(worker.take(error).empty());
  EXPECT_FALSE(worker.is_idle());
  disk.may_go.release();
  woken.acquire();
  woken.acquire();
  const auto done = worker.take(error);
  ASSERT_EQ(done.size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(done[i].link, i + 1);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(error, 0);
  EXPECT_TRUE(worker.is_idle());
}

// A disk that hangs holds up one batch; connections come and go meanwhile.
TEST(DiskWorker, KeepsNoAnswersForClosedConnectionsAndStillSaves) {
  SlowDisk disk;
  std::counting_semaphore<8> woken(0);
  std::vector<DiskWorker::Batch> batches;
  DiskWorker worker(
      [&](DiskWorker::Batch& batch) {
        batches.push_back(batch);
        disk.work();
        return 0;
      },
      [&] { woken.release(); });
  worker.submit(job(1));
  disk.began.acquire();
  for (std::uint64_t link = 2; link < 1000; ++link) {
    DiskWorker::Job each = job(link);
    each.save.emplace().volume = std::to_string(link);
    each.flush = ChunkBitmap(1000);
    each.flush.set(static_cast<std::uint32_t>(link));
    worker.submit(std::move(each));
    worker.forget(link);
  }
  disk.may_go.release();
  woken.acquire();
  woken.acquire();
  int error = 0;
  EXPECT_EQ(worker.take(error).size(), 1u);
  EXPECT_TRUE(worker.is_idle());
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_TRUE(batches[1].jobs.empty());
  EXPECT_EQ(batches[1].save->volume, "999");
  EXPECT_EQ(batches[1].flush.count(), 998u);
}

// Answers on other connections wait for it, too.
TEST(DiskWorker, IsNotIdleDuringASaveOfAClosedConnection) {
  SlowDisk disk;
  std::counting_semaphore<8> woken(0);
  DiskWorker worker(
      [&](DiskWorker::Batch&) {
        disk.work();
        return 0;
      },
      [&] { woken.release(); });
  DiskWorker::Job saving = job(1);
  saving.save.emplace();
  worker.submit(std::move(saving));
  worker.forget(1);
  EXPECT_FALSE(worker.is_idle());
  disk.began.acquire();
  EXPECT_FALSE(worker.is_idle());
  disk.may_go.release();
  woken.acquire();
  int error = 0;
  static_cast<void>(worker.take(error));
  EXPECT_TRUE(worker.is_idle());
}

// No job counts as done that is not durable.
TEST(DiskWorker, ReturnsNoJobsOnceTheDiskFailed) {
  std::counting_semaphore<8> woken(0);
  DiskWorker worker([](DiskWorker::Batch&) { return ENOSPC; }, [&] { woken.release(); });
  worker.submit(job(1));
  woken.acquire();
  int error = 0;
  EXPECT_TRUE(worker.take(error).empty());
  EXPECT_EQ(error, ENOSPC);
  EXPECT_FALSE(worker.is_idle()) << "an answer sent now would precede a record that is not saved";
}

TEST(DiskWorker, FinishesWithTheErrorOfWaitingJobs) {
  SlowDisk disk;
  DiskWorker worker(
      [&](DiskWorker::Batch&) {
        disk.work();
        return disk.batches == 1 ? 0 : EIO;
      },
      [] {});
  worker.submit(job(1));
  disk.began.acquire();
  worker.submit(job(2));
  disk.may_go.release();
  EXPECT_EQ(worker.finish(), EIO);
}

}  // namespace
}  // namespace cepheus::replica
