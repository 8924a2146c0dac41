#include "net/egress_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>

namespace cepheus::net {
namespace {

constexpr wire::Instant kNow{std::chrono::milliseconds(1)};
constexpr wire::BitRate kHundredGigabits{100'000'000'000};

LinkConfig link_with(EcnConfig ecn, wire::Bytes limit = 4 << 20) {
  LinkConfig link;
  link.rate = kHundredGigabits;
  link.queue_bytes = limit;
  link.ecn = ecn;
  return link;
}

TEST(EcnConfig, TakesItsThresholdsFromTheRate) {
  const EcnConfig at100 = EcnConfig{.on = true}.for_rate(kHundredGigabits);
  EXPECT_EQ(at100.kmin, 50'000u);
  EXPECT_EQ(at100.kmax, 500'000u);
  EXPECT_EQ(at100.pmax, 0.01);
  const EcnConfig at1 = EcnConfig{.on = true}.for_rate(wire::BitRate{1'000'000'000});
  EXPECT_EQ(at1.kmin, 8'500u) << "two of the largest packets";
  EXPECT_EQ(at1.kmax, 85'000u);
}

TEST(EcnConfig, FillsInMissingThresholdsInOrder) {
  EXPECT_EQ((EcnConfig{.on = true, .kmin = 900'000}.for_rate(kHundredGigabits).kmax), 900'000u);
  EXPECT_EQ((EcnConfig{.on = true, .kmax = 40'000}.for_rate(kHundredGigabits).kmin), 4'001u);
  const EcnConfig own{.on = true, .kmin = 1, .kmax = 2, .pmax = 0.5};
  EXPECT_EQ(own.for_rate(kHundredGigabits), own);
}

TEST(EcnMarker, MarksNothingUpToKminAndEverythingFromKmax) {
  EcnMarker marker({.on = true, .kmin = 1000, .kmax = 2000, .pmax = 0.5}, 1);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(marker.marks(0));
    EXPECT_FALSE(marker.marks(1000));
    EXPECT_TRUE(marker.marks(2000));
  }
}

TEST(EcnMarker, MarksAsOftenAsTheQueueIsLong) {
  EcnMarker marker({.on = true, .kmin = 1000, .kmax = 2000, .pmax = 0.2}, 1);
  int marks = 0;
  for (int i = 0; i < 100'000; ++i) marks += marker.marks(1500) ? 1 : 0;
  EXPECT_NEAR(marks, 10'000, 300);  // 0.2 * 500 / 1000; a standard deviation is 95
}

TEST(EcnMarker, DrawsTheSameFromTheSameSeed) {
  const EcnConfig config{.on = true, .kmin = 0, .kmax = 2000, .pmax = 1};
  EcnMarker one(config, 7), same(config, 7), other(config, 8);
  bool differs = false;
  for (int i = 0; i < 1000; ++i) {
    const bool marks = one.marks(1000);
    EXPECT_EQ(marks, same.marks(1000));
    differs |= marks != other.marks(1000);
  }
  EXPECT_TRUE(differs);
}

TEST(EgressQueue, SendsControlBeforeDataAndEachInItsOrder) {
  EgressQueue<int> queue(link_with({}));
  queue.push(TrafficClass::kData, 1, 1000);
  queue.push(TrafficClass::kData, 2, 1000);
  queue.push(TrafficClass::kControl, 3, 60);
  queue.push(TrafficClass::kControl, 4, 60);
  EXPECT_EQ(queue.bytes(), 2120u);
  std::vector<int> order;
  for (int item = 0; queue.pop(kNow, item);) order.push_back(item);
  EXPECT_EQ(order, (std::vector<int>{3, 4, 1, 2}));
  EXPECT_TRUE(queue.is_empty());
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_EQ(queue.counters().high_water, 2120u);
}

TEST(EgressQueue, DataGoesBehindControlAndControlNotBehindData) {
  EgressQueue<int> queue(link_with({}));
  EXPECT_FALSE(queue.must_wait(TrafficClass::kData, kNow));
  queue.push(TrafficClass::kData, 1, 1000);
  EXPECT_TRUE(queue.must_wait(TrafficClass::kData, kNow));
  EXPECT_FALSE(queue.must_wait(TrafficClass::kControl, kNow));
  int item = 0;
  queue.pop(kNow, item);
  queue.push(TrafficClass::kControl, 2, 60);
  EXPECT_TRUE(queue.must_wait(TrafficClass::kData, kNow));
}

TEST(EgressQueue, KeepsOnlyTheNewestFrameToTheNeighbour) {
  EgressQueue<int> queue(link_with({}));
  queue.push(TrafficClass::kLink, 1, 60);
  queue.push(TrafficClass::kLink, 2, 60);
  queue.push(TrafficClass::kControl, 3, 60);
  EXPECT_EQ(queue.items(), 2u);
  int item = 0;
  ASSERT_TRUE(queue.pop(kNow, item));
  EXPECT_EQ(item, 2);
  ASSERT_TRUE(queue.pop(kNow, item));
  EXPECT_EQ(item, 3);
  EXPECT_TRUE(queue.is_empty());
}

TEST(EgressQueue, HoldsNoMoreOfAClassThanItsLimit) {
  EgressQueue<int> queue(link_with({}, 2000));
  EXPECT_TRUE(queue.has_space(TrafficClass::kData, 2000));
  queue.push(TrafficClass::kData, 1, 1500);
  EXPECT_TRUE(queue.has_space(TrafficClass::kData, 500));
  EXPECT_FALSE(queue.has_space(TrafficClass::kData, 501));
  EXPECT_TRUE(queue.has_space(TrafficClass::kControl, 2000))
      << "a HELLO must not fall over data that waits";
}

wire::Frame packet(wire::Ecn ecn) {
  wire::RoceHeaders headers;
  headers.ip.tos = static_cast<std::uint8_t>(ecn);
  wire::Frame frame;
  headers.emit(frame, 0);
  return frame;
}

TEST(EgressQueue, MarksNoControlAndGoesByDataAlone) {
  EgressQueue<int> queue(link_with({.on = true, .kmin = 1000, .kmax = 1001}));
  wire::Frame capable = packet(wire::Ecn::kEct0), deaf = packet(wire::Ecn::kNotCapable);
  queue.push(TrafficClass::kControl, 1, 5000);
  EXPECT_FALSE(queue.mark(TrafficClass::kData, capable)) << "no data waits";
  queue.push(TrafficClass::kData, 2, 1001);
  EXPECT_FALSE(queue.mark(TrafficClass::kControl, capable));
  EXPECT_FALSE(queue.mark(TrafficClass::kData, deaf)) << "its sender does not listen to marks";
  EXPECT_TRUE(queue.mark(TrafficClass::kData, capable));
  EXPECT_EQ(wire::ecn_of(wire::RoceHeaders::parse(capable)->ip.tos), wire::Ecn::kExperienced);
  EXPECT_EQ(queue.counters().marked, 1u);
}

TEST(EgressQueue, KeepsDataWhileItIsPausedAndSendsTheRest) {
  using namespace std::chrono_literals;
  LinkConfig link = link_with({});
  link.rate = wire::BitRate{512'000'000};  // a quantum takes a microsecond
  EgressQueue<int> queue(link);
  wire::PauseFrame words;
  words.quanta[3] = 10;
  wire::Frame pause;
  words.emit(pause, {});
  ASSERT_TRUE(queue.on_pause(kNow, pause));
  EXPECT_EQ(queue.ready_at(kNow), wire::kNever);
  EXPECT_TRUE(queue.must_wait(TrafficClass::kData, kNow));
  EXPECT_FALSE(queue.must_wait(TrafficClass::kControl, kNow));
  queue.push(TrafficClass::kData, 1, 1000);
  EXPECT_EQ(queue.ready_at(kNow), kNow + 10us);
  int item = 0;
  EXPECT_FALSE(queue.pop(kNow, item));
  queue.push(TrafficClass::kControl, 2, 60);
  EXPECT_EQ(queue.ready_at(kNow), kNow);
  ASSERT_TRUE(queue.pop(kNow, item));
  EXPECT_EQ(item, 2);
  EXPECT_FALSE(queue.pop(kNow + 9us, item));
  ASSERT_TRUE(queue.pop(kNow + 10us, item)) << "its time is up";
  EXPECT_EQ(item, 1);
  EXPECT_EQ(queue.pause().time(kNow + 20us), 10us);
}

// After any sequence of pushes and pops its byte counts are those of two plain lists.
RC_GTEST_PROP(EgressQueue, CountsRight, (const std::vector<std::pair<bool, std::uint16_t>>& ops)) {
  EgressQueue<int> queue(link_with({}, 100'000));
  std::array<std::deque<std::pair<int, wire::Bytes>>, 2> model;
  int next = 0;
  for (const auto& [is_data, size] : ops) {
    if (size % 3 == 0) {
      int item = 0;
      const std::size_t from = model[0].empty() ? 1 : 0;
      RC_ASSERT(queue.pop(kNow, item) == !model[from].empty());
      if (model[from].empty()) continue;
      RC_ASSERT(item == model[from].front().first);
      model[from].pop_front();
    } else if (const TrafficClass of = is_data ? TrafficClass::kData : TrafficClass::kControl;
               queue.has_space(of, size)) {
      queue.push(of, ++next, size);
      model[is_data ? 1 : 0].push_back({next, size});
    }
    wire::Bytes bytes = 0;
    for (const auto& line : model) {
      for (const auto& waiting : line) bytes += waiting.second;
    }
    RC_ASSERT(queue.bytes() == bytes);
    RC_ASSERT(queue.items() == model[0].size() + model[1].size());
  }
}

}  // namespace
}  // namespace cepheus::net
