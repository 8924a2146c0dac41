#include "replica/volume/request_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

namespace cepheus::replica {
namespace {

constexpr std::size_t kPage = BounceArena::kPage;

TEST(BounceArena, GivesOutFreePiecesAndJoinsReturnedOnes) {
  BounceArena arena(4 * kPage);
  std::uint8_t* a = arena.take(kPage);
  std::uint8_t* b = arena.take(1);  // a whole page, too
  std::uint8_t* c = arena.take(2 * kPage);
  ASSERT_TRUE(a != nullptr && b != nullptr && c != nullptr);
  EXPECT_EQ(arena.take(1), nullptr);
  arena.give_back(a, kPage);
  arena.give_back(c, 2 * kPage);
  EXPECT_EQ(arena.take(3 * kPage), nullptr);  // b lies between
  arena.give_back(b, 1);
  EXPECT_EQ(arena.take(4 * kPage), arena.all().data());
}

struct Ended {
  std::atomic<int> count{0}, error{1};
  static void on_done(void* arg, int error) {
    auto& self = *static_cast<Ended*>(arg);
    self.error = error;
    ++self.count;
  }
};

IoRequest write_of(std::size_t length) { return {0, IoKind::kWrite, 0, length, false}; }

TEST(RequestQueue, CopiesWrittenDataBeforeItReturns) {
  RequestQueue queue(2, 4 * kPage, kPage);
  Ended ended;
  bool is_first = false;
  std::vector<std::uint8_t> data(kPage, 7);
  ASSERT_EQ(queue.submit(write_of(kPage), data.data(), false, &Ended::on_done, &ended, is_first),
            0);
  EXPECT_TRUE(is_first);
  data.assign(kPage, 8);
  std::vector<unsigned> taken;
  queue.take(taken);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(queue.slot(taken[0]).bounce[kPage - 1], 7);
  queue.complete(taken[0], 0);
  EXPECT_EQ(ended.count, 1);
  EXPECT_EQ(ended.error, 0);
}

TEST(RequestQueue, ReadsArriveInTheCallersBufferIfTheySucceed) {
  RequestQueue queue(2, 4 * kPage, kPage);
  for (const int error : {0, -ESTALE}) {
    Ended ended;
    bool is_first = false;
    std::vector<std::uint8_t> data(kPage, 7);
    const IoRequest io{0, IoKind::kRead, 0, kPage, false};
    ASSERT_EQ(queue.submit(io, data.data(), false, &Ended::on_done, &ended, is_first), 0);
    std::vector<unsigned> taken;
    queue.take(taken);
    std::fill_n(queue.slot(taken[0]).bounce, kPage, std::uint8_t{9});
    queue.complete(taken[0], error);
    EXPECT_EQ(data.front(), error == 0 ? 9 : 7);
    EXPECT_EQ(ended.error, error);
  }
}

TEST(RequestQueue, ReportsMissingSpaceForRequestsOrTheirData) {
  RequestQueue queue(2, 4 * kPage, kPage);
  Ended ended;
  bool is_first = false;
  std::vector<std::uint8_t> data(5 * kPage);
  const auto submit = [&](std::size_t length) {
    return queue.submit(write_of(length), data.data(), false, &Ended::on_done, &ended, is_first);
  };
  EXPECT_EQ(submit(3 * kPage), 0);
  EXPECT_EQ(submit(2 * kPage), -EAGAIN);
  EXPECT_EQ(submit(kPage), 0);  // reserved bytes are not given out
  EXPECT_EQ(submit(kPage), -EAGAIN);
}

TEST(RequestQueue, WaitingCallersContinueWhenThereIsSpace) {
  RequestQueue queue(1, 4 * kPage, kPage);
  Ended ended;
  bool is_first = false;
  std::vector<std::uint8_t> data(kPage);
  ASSERT_EQ(queue.submit(write_of(kPage), data.data(), true, &Ended::on_done, &ended, is_first), 0);
  std::thread waiting([&] {
    bool unused = false;
    EXPECT_EQ(queue.submit(write_of(kPage), data.data(), true, &Ended::on_done, &ended, unused), 0);
  });
  std::vector<unsigned> taken;
  queue.take(taken);
  queue.complete(taken[0], 0);
  waiting.join();
  taken.clear();
  queue.take(taken);
  EXPECT_EQ(taken.size(), 1u);
}

TEST(RequestQueue, WaitingCallersReturnWhenItIsClosed) {
  RequestQueue queue(1, 4 * kPage, kPage);
  Ended ended;
  bool is_first = false;
  std::vector<std::uint8_t> data(kPage);
  ASSERT_EQ(queue.submit(write_of(kPage), data.data(), true, &Ended::on_done, &ended, is_first), 0);
  std::thread waiting([&] {
    bool unused = false;
    EXPECT_EQ(queue.submit(write_of(kPage), data.data(), true, &Ended::on_done, &ended, unused),
              -ESTALE);
  });
  queue.close(-ESTALE);
  waiting.join();
}

// done() may start requests; its thread must not wait for itself.
TEST(RequestQueue, TheVolumesOwnThreadNeverWaits) {
  RequestQueue queue(1, 4 * kPage, kPage);
  queue.own(std::this_thread::get_id());
  Ended ended;
  bool is_first = false;
  std::vector<std::uint8_t> data(kPage);
  ASSERT_EQ(queue.submit(write_of(kPage), data.data(), true, &Ended::on_done, &ended, is_first), 0);
  EXPECT_EQ(queue.submit(write_of(kPage), data.data(), true, &Ended::on_done, &ended, is_first),
            -EAGAIN);
}

}  // namespace
}  // namespace cepheus::replica
