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

TEST(DiskWorker, DoesWhatGatheredMeanwhileAtOnce) {
  std::binary_semaphore may_go(0), began(0);
  std::counting_semaphore<8> woken(0);
  std::vector<std::size_t> sizes;
  DiskWorker worker(
      [&](std::vector<DiskWorker::Job>& jobs) {
        sizes.push_back(jobs.size());
        if (sizes.size() == 1) {
          began.release();
          may_go.acquire();
        }
        return 0;
      },
      [&] { woken.release(); });
  worker.submit(job(1));
  began.acquire();
  worker.submit(job(2));
  worker.submit(job(3));
  int error = 0;
  EXPECT_TRUE(worker.take(error).empty());
  EXPECT_EQ(worker.pending(), 3u);
  may_go.release();
  woken.acquire();
  woken.acquire();
  const auto done = worker.take(error);
  ASSERT_EQ(done.size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(done[i].link, i + 1);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(error, 0);
  EXPECT_EQ(worker.pending(), 0u);
}

// Nobody is told that something is durable which is not.
TEST(DiskWorker, HandsNothingBackOnceTheDiskFailed) {
  std::counting_semaphore<8> woken(0);
  DiskWorker worker([](std::vector<DiskWorker::Job>&) { return ENOSPC; }, [&] { woken.release(); });
  worker.submit(job(1));
  woken.acquire();
  int error = 0;
  EXPECT_TRUE(worker.take(error).empty());
  EXPECT_EQ(error, ENOSPC);
}

}  // namespace
}  // namespace cepheus::replica
