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

// A queue of `depth` requests, with memory for four pages of data.
struct Requests {
  explicit Requests(unsigned depth) : queue(depth, 4 * kPage, kPage) {}
  int submit(IoKind kind, std::size_t length, bool waits) {
    return queue.submit({0, kind, 0, length, false}, data.data(), waits, &Ended::on_done, &ended,
                        is_first);
  }
  int write(std::size_t length, bool waits = false) {
    return submit(IoKind::kWrite, length, waits);
  }
  std::vector<unsigned> take() {
    std::vector<unsigned> taken;
    queue.take(taken);
    return taken;
  }

  RequestQueue queue;
  Ended ended;
  bool is_first = false;
  std::vector<std::uint8_t> data = std::vector<std::uint8_t>(5 * kPage, 7);
};

TEST(RequestQueue, CopiesWrittenDataBeforeItReturns) {
  Requests of(2);
  ASSERT_EQ(of.write(kPage), 0);
  EXPECT_TRUE(of.is_first);
  of.data.assign(kPage, 8);
  const auto taken = of.take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(of.queue.slot(taken[0]).bounce[kPage - 1], 7);
  of.queue.complete(taken[0], 0);
  EXPECT_EQ(of.ended.count, 1);
  EXPECT_EQ(of.ended.error, 0);
}

TEST(RequestQueue, ReadsArriveInTheCallersBufferIfTheySucceed) {
  for (const int error : {0, -ESTALE}) {
    Requests of(2);
    ASSERT_EQ(of.submit(IoKind::kRead, kPage, false), 0);
    const auto taken = of.take();
    std::fill_n(of.queue.slot(taken[0]).bounce, kPage, std::uint8_t{9});
    of.queue.complete(taken[0], error);
    EXPECT_EQ(of.data.front(), error == 0 ? 9 : 7);
    EXPECT_EQ(of.ended.error, error);
  }
}

TEST(RequestQueue, ReportsMissingSpaceForRequestsOrTheirData) {
  Requests of(2);
  EXPECT_EQ(of.write(3 * kPage), 0);
  EXPECT_EQ(of.write(2 * kPage), -EAGAIN);
  EXPECT_EQ(of.write(kPage), 0);  // reserved bytes are not given out
  EXPECT_EQ(of.write(kPage), -EAGAIN);
}

TEST(RequestQueue, WaitingCallersContinueWhenThereIsSpaceAndReturnWhenItIsClosed) {
  for (const bool closes : {false, true}) {
    Requests of(1);
    ASSERT_EQ(of.write(kPage, true), 0);
    std::thread waiting([&] { EXPECT_EQ(of.write(kPage, true), closes ? -ESTALE : 0); });
    if (closes) {
      of.queue.close(-ESTALE);
      waiting.join();
      continue;
    }
    of.queue.complete(of.take()[0], 0);
    waiting.join();
    EXPECT_EQ(of.take().size(), 1u);
  }
}

// done() may start requests; its thread must not wait for itself.
TEST(RequestQueue, TheVolumesOwnThreadNeverWaits) {
  Requests of(1);
  of.queue.own(std::this_thread::get_id());
  ASSERT_EQ(of.write(kPage, true), 0);
  EXPECT_EQ(of.write(kPage, true), -EAGAIN);
}

}  // namespace
}  // namespace cepheus::replica
