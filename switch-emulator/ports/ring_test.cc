#include "switch-emulator/ports/ring.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <rapidcheck/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <memory>
#include <thread>

#include "switch-emulator/ports/port_segment.h"

namespace cepheus::fabric {
namespace {

constexpr std::uint32_t kCapacity = 8;
constexpr int kTimeLimitMs = 20'000;

struct Entry {
  std::uint64_t number;
  std::uint64_t check;  // wrong in torn or stale entries
};
Entry entry_of(std::uint64_t n) { return {n, ~n * 0x9E3779B97F4A7C15ull}; }
bool is_whole(const Entry& e) { return e.check == entry_of(e.number).check; }

struct Shared {
  alignas(64) SharedIndex produced;
  alignas(64) SharedIndex consumed;
  WakeFlag consumer_sleeps, producer_sleeps;
  std::array<Entry, kCapacity> entries;

  explicit Shared(std::uint32_t start = 0) : produced(start), consumed(start) {}
  RingView<Entry> view() { return {&produced, &consumed, entries.data(), kCapacity}; }
};

// Counts of entries so far: 0, or values from which a test's steps pass 2^31 or 2^32.
rc::Gen<std::uint32_t> starts() {
  return rc::gen::map(rc::gen::pair(rc::gen::element<std::uint32_t>(0, 1u << 31),
                                    rc::gen::inRange<std::uint32_t>(0, 2 * kCapacity)),
                      [](const auto& pair) { return pair.first - pair.second; });
}

TEST(Ring, ShowsNothingBeforePublishAndFreesNothingBeforeRelease) {
  auto shared = std::make_unique<Shared>();
  RingProducer<Entry> producer(shared->view());
  RingConsumer<Entry> consumer(shared->view());
  for (std::uint64_t n = 0; n < kCapacity; ++n) {
    ASSERT_EQ(producer.free_entries(), kCapacity - n);
    producer.next() = entry_of(n);
    producer.advance();
  }
  EXPECT_EQ(producer.free_entries(), 0u);
  EXPECT_EQ(consumer.available(), 0u);
  producer.publish();
  EXPECT_EQ(consumer.available(), kCapacity);
  Entry entry{};
  consumer.take(entry);
  consumer.take(entry);
  EXPECT_EQ(entry.number, 1u);
  EXPECT_EQ(producer.free_entries(), 0u);
  consumer.release();
  EXPECT_EQ(producer.free_entries(), 2u);
}

// Random batches of every operation against a queue. Its indices pass 2^31 or 2^32 on the way: 500
// steps add about 50.
RC_GTEST_PROP(Ring, IsABoundedQueue, ()) {
  const std::uint32_t start = *starts();
  auto shared = std::make_unique<Shared>(start);
  RingProducer<Entry> producer(shared->view(), start);
  RingConsumer<Entry> consumer(shared->view(), start);
  std::deque<std::uint64_t> written, visible;
  std::uint32_t taken_unreleased = 0;
  std::uint64_t next = 0;
  for (const std::uint8_t step :
       *rc::gen::container<std::vector<std::uint8_t>>(500, rc::gen::inRange<std::uint8_t>(0, 4))) {
    switch (step) {
      case 0: {
        const std::size_t held = written.size() + visible.size() + taken_unreleased;
        const std::uint32_t free_entries = producer.free_entries();
        RC_ASSERT(free_entries <= kCapacity - held);
        if (free_entries == 0) break;
        producer.next() = entry_of(next);
        producer.advance();
        written.push_back(next++);
        break;
      }
      case 1:
        producer.publish();
        visible.insert(visible.end(), written.begin(), written.end());
        written.clear();
        break;
      case 2: {
        if (consumer.available() == 0) {
          RC_ASSERT(visible.empty());
          break;
        }
        Entry entry{};
        consumer.take(entry);
        RC_ASSERT(is_whole(entry));
        RC_ASSERT(entry.number == visible.front());
        visible.pop_front();
        ++taken_unreleased;
        break;
      }
      default:
        consumer.release();
        taken_unreleased = 0;
    }
  }
  RC_ASSERT(!producer.is_corrupt());
  RC_ASSERT(!consumer.is_corrupt());
  RC_ASSERT(producer.produced() == static_cast<std::uint32_t>(start + next));
}

// Every step of a ring that is full again and again, once around each edge.
TEST(Ring, GoesOnWhereItsIndicesWrap) {
  for (const std::uint32_t edge : {0u, 1u << 31}) {
    const std::uint32_t start = edge - 2 * kCapacity;
    auto shared = std::make_unique<Shared>(start);
    RingProducer<Entry> producer(shared->view(), start);
    RingConsumer<Entry> consumer(shared->view(), start);
    for (std::uint64_t n = 0; n < std::uint64_t{4} * kCapacity;) {
      for (const std::uint64_t end = n + kCapacity; n < end; ++n) {
        ASSERT_EQ(producer.free_entries(), end - n);
        producer.next() = entry_of(n);
        producer.advance();
      }
      ASSERT_EQ(producer.free_entries(), 0u);
      producer.publish();
      ASSERT_EQ(consumer.available(), kCapacity);
      for (std::uint64_t m = n - kCapacity; m < n; ++m) {
        Entry entry{};
        consumer.take(entry);
        ASSERT_EQ(entry.number, m);
        ASSERT_TRUE(is_whole(entry));
      }
      consumer.release();
      ASSERT_EQ(producer.consumed(), static_cast<std::uint32_t>(start + n));
    }
    EXPECT_EQ(producer.consumed(), edge + 2 * kCapacity);
  }
}

RC_GTEST_PROP(Ring, RefusesAnImpossibleConsumer, (std::uint32_t lie)) {
  const std::uint32_t start = *starts();
  auto shared = std::make_unique<Shared>(start);
  RingProducer<Entry> producer(shared->view(), start);
  for (int n = 0; n < 3; ++n) {
    producer.next() = entry_of(0);
    producer.advance();
  }
  producer.publish();
  shared->consumed = start + lie;
  const std::uint32_t consumed = producer.consumed();
  RC_ASSERT(producer.is_corrupt() == (lie > 3));
  RC_ASSERT(consumed - start == (lie > 3 ? 0 : lie));
  if (lie > 3) RC_ASSERT(producer.free_entries() == 0u);
}

RC_GTEST_PROP(Ring, RefusesAnImpossibleProducer, (std::uint32_t lie)) {
  const std::uint32_t start = *starts();
  auto shared = std::make_unique<Shared>(start);
  RingConsumer<Entry> consumer(shared->view(), start);
  shared->produced = start + lie;
  const bool possible = lie <= kCapacity;
  RC_ASSERT(consumer.available() == (possible ? lie : 0));
  RC_ASSERT(consumer.is_corrupt() == !possible);
  shared->produced = start + 1;  // invalid once
  if (!possible) RC_ASSERT(consumer.available() == 0u);
}

TEST(Ring, RefusesAnIndexThatRunsBackwards) {
  auto shared = std::make_unique<Shared>();
  RingProducer<Entry> producer(shared->view());
  for (int n = 0; n < 4; ++n) producer.advance();
  producer.publish();
  shared->consumed = 3;
  EXPECT_EQ(producer.consumed(), 3u);
  shared->consumed = 2;
  EXPECT_EQ(producer.consumed(), 3u);
  EXPECT_TRUE(producer.is_corrupt());
}

// Code of both sides: work while there is some, else request to be woken, check once more and
// sleep. A lost wake-up ends in a time-out.
template <typename Ready>
bool sleep_until(Ready ready, WakeFlag& flag, int doorbell) {
  while (!ready()) {
    flag.send_request(1);
    if (!ready()) {
      pollfd waiting{doorbell, POLLIN, 0};
      if (poll(&waiting, 1, kTimeLimitMs) != 1) return false;
      eventfd_t count = 0;
      eventfd_read(doorbell, &count);
    }
    flag.withdraw();
  }
  return true;
}

bool produce(Shared& shared, std::uint64_t total, int own_bell, int peer_bell) {
  RingProducer<Entry> producer(shared.view());
  for (std::uint64_t n = 0; n < total;) {
    if (!sleep_until([&] { return producer.free_entries() > 0; }, shared.producer_sleeps, own_bell))
      return false;
    for (std::uint64_t batch = n % 3 + 1; batch > 0 && n < total && producer.free_entries() > 0;
         --batch) {
      producer.next() = entry_of(n++);
      producer.advance();
    }
    producer.publish();
    if (shared.consumer_sleeps.take(1)) eventfd_write(peer_bell, 1);
  }
  return !producer.is_corrupt();
}

bool consume(Shared& shared, std::uint64_t total, int own_bell, int peer_bell) {
  RingConsumer<Entry> consumer(shared.view());
  for (std::uint64_t n = 0; n < total;) {
    if (!sleep_until([&] { return consumer.available() > 0; }, shared.consumer_sleeps, own_bell))
      return false;
    for (; consumer.available() > 0; ++n) {
      Entry entry{};
      consumer.take(entry);
      if (entry.number != n || !is_whole(entry)) return false;
    }
    consumer.release();
    if (shared.producer_sleeps.take(1)) eventfd_write(peer_bell, 1);
  }
  return !consumer.is_corrupt();
}

TEST(Ring, LosesNothingAndNoWakeUpBetweenTwoThreads) {
  constexpr std::uint64_t kTotal = 300'000;
  auto shared = std::make_unique<Shared>();
  const int to_consumer = eventfd(0, EFD_NONBLOCK), to_producer = eventfd(0, EFD_NONBLOCK);
  bool produced = false;
  std::thread producer([&] { produced = produce(*shared, kTotal, to_producer, to_consumer); });
  EXPECT_TRUE(consume(*shared, kTotal, to_consumer, to_producer));
  producer.join();
  EXPECT_TRUE(produced);
  close(to_consumer);
  close(to_producer);
}

TEST(Ring, LosesNothingAndNoWakeUpBetweenTwoProcesses) {
  constexpr std::uint64_t kTotal = 300'000;
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Shared& shared = *static_cast<Shared*>(memory);
  const int to_consumer = eventfd(0, EFD_NONBLOCK), to_producer = eventfd(0, EFD_NONBLOCK);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(produce(shared, kTotal, to_producer, to_consumer) ? 0 : 1);
  EXPECT_TRUE(consume(shared, kTotal, to_consumer, to_producer));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(to_consumer);
  close(to_producer);
  munmap(memory, sizeof(Shared));
}

TEST(WakeFlag, ReportsEachRequestOnceAndKeepsOtherReasons) {
  struct {
    WakeFlag flag;
  } shared{};
  EXPECT_FALSE(shared.flag.take(1));
  shared.flag.send_request(1);
  EXPECT_FALSE(shared.flag.take(2));
  EXPECT_TRUE(shared.flag.take(3));
  EXPECT_FALSE(shared.flag.take(3));
  shared.flag.send_request(2);
  shared.flag.withdraw();
  EXPECT_FALSE(shared.flag.take(2));
}

}  // namespace
}  // namespace cepheus::fabric
