// Long reductions through the C API, over the fake device: their memory, credit, order and end.
#include <gmock/gmock.h>
#include <mcast/recovery.h>

#include <numeric>
#include <vector>

#include "libmcast/fake_reductions.h"

namespace cepheus::mcast {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::size_t kUnit = 256;  // bytes
constexpr std::size_t kUnits = 20;  // of an operation

class LongReduction : public ReductionLaneOverFake {
 protected:
  LongReduction() {
    become_active(0, kUnit);
    for (std::size_t i = 0; i < contribution_.size(); ++i) contribution_[i] = own(i);
  }
  ~LongReduction() override { drop(); }
  static char own(std::size_t at) { return static_cast<char>(at * 7 + at / kUnit); }
  static char result(std::size_t at) { return static_cast<char>(~own(at)); }

  mcast_status_t reduce(const void* contribution, void* result, Op& op,
                        mcast_mem_h contribution_memory = nullptr,
                        mcast_mem_h result_memory = nullptr) {
    return mcast_reduce(group_, contribution, contribution_memory, result, result_memory,
                        contribution_.size(), MCAST_BOR, MCAST_UINT8, &op);
  }
  // The next unit's result comes.
  void deliver_next() {
    std::string data(kUnit, ' ');
    for (std::size_t i = 0; i < kUnit; ++i) data[i] = LongReduction::result(next_ * kUnit + i);
    deliver(next_++, data);
  }
  void complete_sends() {
    while (!pair().sends.empty()) complete_send();
  }
  // Until the operation has its result.
  void deliver_rest() {
    while (next_ < kUnits) {
      complete_sends();
      deliver_next();
    }
  }
  bool has_result(const std::vector<char>& memory, std::size_t units = kUnits) const {
    for (std::size_t i = 0; i < units * kUnit; ++i) {
      if (memory[i] != result(i)) return false;
    }
    return true;
  }
  // Its own memory.
  std::vector<char> contribution_ = std::vector<char>(kUnits * kUnit), result_ = contribution_;
  std::uint16_t next_ = 0;
};

TEST_F(LongReduction, GoesStraightBetweenTheCallersBuffers) {
  ASSERT_EQ(reduce(contribution_.data(), result_.data(), op_), MCAST_INPROGRESS);
  ASSERT_EQ(pair().sends.size(), kWindow);
  for (std::size_t i = 0; i < kWindow; ++i) {
    EXPECT_EQ(pair().sends[i].address, &contribution_[i * kUnit]);
    EXPECT_EQ(pair().sends[i].length, kUnit);
  }
  std::vector<std::size_t> straight;
  while (op_.calls == 0 && next_ < kUnits) {
    const auto* const to = static_cast<const char*>(pair().receives.front().address);
    if (to == &result_[next_ * kUnit]) straight.push_back(next_);
    complete_sends();
    deliver_next();
  }
  // The first window's receives were posted before, and the last window's results are kept.
  EXPECT_THAT(straight, testing::ElementsAre(8, 9, 10, 11));
  EXPECT_EQ(op_.status, MCAST_OK);
  EXPECT_EQ(op_.length, kUnits * kUnit);
  EXPECT_TRUE(has_result(result_));
  EXPECT_EQ(pair().receives.size(), kWindow);
  EXPECT_EQ(attr().sends_outstanding, 0u);
  EXPECT_EQ(attr().bytes_received, kUnits * kUnit);
}

// A quarter of the window is two.
TEST_F(LongReduction, SignalsTheLastSendOfEachList) {
  ASSERT_EQ(reduce(contribution_.data(), result_.data(), op_), MCAST_INPROGRESS);
  for (std::size_t i = 0; i < kWindow; ++i) {
    EXPECT_EQ(pair().sends[i].is_signaled, i % 2 == 1) << i;
  }
  EXPECT_EQ(attr().sends_outstanding, kWindow);
  complete_send();
  EXPECT_EQ(attr().sends_outstanding, kWindow - 2);
  deliver_next();
  EXPECT_EQ(pair().receives.size(), kWindow - 1) << "receives come in lists, too";
  EXPECT_EQ(pair().sends.size(), kWindow - 2);
  deliver_next();
  EXPECT_EQ(pair().receives.size(), kWindow);
  EXPECT_EQ(pair().sends.size(), kWindow);
}

TEST_F(LongReduction, InPlaceReplacesEachContributionByItsResult) {
  const std::size_t before = device_.regions;
  ASSERT_EQ(reduce(contribution_.data(), contribution_.data(), op_), MCAST_INPROGRESS);
  EXPECT_EQ(device_.regions, before + 1);
  EXPECT_EQ(device_.registrations.back(), 0u) << "the device only reads it";
  for (std::size_t unit = 0; unit < kUnits; ++unit) {
    for (const fake::Posted& each : pair().receives) {
      const auto* const at = static_cast<const char*>(each.address);
      ASSERT_TRUE(at < contribution_.data() || at >= contribution_.data() + contribution_.size());
    }
    complete_sends();
    deliver_next();
    EXPECT_TRUE(has_result(contribution_, unit + 1));
    for (std::size_t at = (unit + 1) * kUnit; at < contribution_.size(); ++at) {
      ASSERT_EQ(contribution_[at], own(at)) << "a contribution without a result is the caller's";
    }
  }
  EXPECT_EQ(op_.status, MCAST_OK);
}

// The device may repeat from that memory.
TEST_F(LongReduction, EndsOnceItsSendsAreAcknowledged) {
  ASSERT_EQ(reduce(contribution_.data(), result_.data(), op_), MCAST_INPROGRESS);
  while (next_ < kUnits) {
    if (next_ < kWindow) complete_sends();
    deliver_next();
  }
  ASSERT_EQ(mcast_barrier(group_, &ops_[0]), MCAST_INPROGRESS);
  EXPECT_TRUE(has_result(result_));
  EXPECT_EQ(op_.calls, 0);
  FakeGroup::deliver("", imm(kUnits, {}));
  EXPECT_EQ(ops_[0].calls, 0) << "operations end in their order";
  complete_sends();
  EXPECT_EQ(op_.status, MCAST_OK);
  EXPECT_EQ(ops_[0].status, MCAST_OK);
  EXPECT_EQ(ops_[0].place, op_.place + 1);
}

TEST_F(LongReduction, KeepsTheOrderOfShortOnesBehindIt) {
  ASSERT_EQ(reduce(contribution_.data(), result_.data(), op_), MCAST_INPROGRESS);
  EXPECT_EQ(mcast_barrier(group_, &ops_[0]), MCAST_ERR_AGAIN) << "it would need a queue";
  std::vector<char> second(contribution_.size());
  ASSERT_EQ(reduce(contribution_.data(), second.data(), ops_[1]), MCAST_INPROGRESS);
  deliver_rest();
  EXPECT_EQ(op_.status, MCAST_OK);
  EXPECT_EQ(ops_[1].calls, 0);
  EXPECT_EQ(pair().receives.front().address, second.data()) << "posted while it waited";
}

TEST_F(LongReduction, HasAsManyOperationsAsTheWindowHasUnits) {
  for (Op& each : std::span(ops_).first(kWindow)) {
    ASSERT_EQ(reduce(contribution_.data(), result_.data(), each), MCAST_INPROGRESS);
  }
  EXPECT_EQ(reduce(contribution_.data(), result_.data(), op_), MCAST_ERR_AGAIN);
}

TEST_F(LongReduction, UsesRegisteredMemory) {
  mcast_mem_h memory = nullptr, part = nullptr;
  ASSERT_EQ(mcast_mem_register(context_, contribution_.data(), contribution_.size(), &memory),
            MCAST_OK);
  ASSERT_EQ(mcast_mem_register(context_, result_.data(), result_.size() - 1, &part), MCAST_OK);
  const std::size_t before = device_.regions;
  EXPECT_EQ(reduce(contribution_.data(), result_.data(), op_, memory, part), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("register all of it"));
  ASSERT_EQ(reduce(contribution_.data(), contribution_.data(), op_, memory), MCAST_INPROGRESS);
  EXPECT_EQ(device_.regions, before);
  deliver_rest();
  EXPECT_EQ(op_.status, MCAST_OK);
  for (const mcast_mem_h each : {memory, part}) mcast_mem_deregister(each);
}

TEST_F(LongReduction, RefusesMemoryThatOverlaps) {
  EXPECT_EQ(mcast_reduce(group_, contribution_.data(), nullptr, contribution_.data() + 1, nullptr,
                         contribution_.size() - 1, MCAST_BOR, MCAST_UINT8, &op_),
            MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("overlaps"));
  EXPECT_EQ(reduce(contribution_.data(), nullptr, op_), MCAST_ERR_INVALID);
}

// Until then it may write a result there.
TEST_F(LongReduction, EndsWithItsGroupOnceTheDeviceHasReturnedItsMemory) {
  const std::size_t before = device_.regions;
  ASSERT_EQ(reduce(contribution_.data(), result_.data(), op_), MCAST_INPROGRESS);
  while (pair().receives.back().address != &result_[9 * kUnit]) {
    complete_sends();
    deliver_next();
  }
  device_.flushes_left = kWindow - 1;
  mcast_group_stop(group_, "told to");
  progress();
  EXPECT_EQ(op_.calls, 0);
  EXPECT_EQ(device_.regions, before + 2);
  device_.flushes_left = 1;
  device_.flush(pair());
  progress();
  EXPECT_EQ(op_.calls, 1);
  EXPECT_EQ(op_.status, MCAST_ERR_FABRIC);
  EXPECT_EQ(device_.regions, before);
  EXPECT_EQ(attr().recvs_posted + attr().sends_outstanding, 0u);
}

// The program may free the memory in done().
TEST_F(LongReduction, GivesItsMemoryBackBeforeItsEnd) {
  static std::size_t regions;
  struct Ending : mcast_op_t {
    Ending() : mcast_op_t{end, this} {}
    static void end(mcast_op_t*, mcast_status_t, size_t, std::uint32_t) {
      regions = fake::Device::instance().regions;
    }
  } ends;
  const std::size_t before = device_.regions;
  ASSERT_EQ(mcast_reduce(group_, contribution_.data(), nullptr, result_.data(), nullptr,
                         contribution_.size(), MCAST_BOR, MCAST_UINT8, &ends),
            MCAST_INPROGRESS);
  regions = 0;
  deliver_rest();
  EXPECT_EQ(regions, before);
}

TEST_F(LongReduction, EndsWhenItsGroupIsDestroyed) {
  static std::vector<std::string> calls;
  struct Ending : mcast_op_t {
    Ending() : mcast_op_t{end, this} {}
    static void end(mcast_op_t*, mcast_status_t how, size_t, std::uint32_t) {
      EXPECT_EQ(how, MCAST_ERR_CANCELED);
      calls.push_back("done");
    }
  } ends;
  calls.clear();
  ASSERT_EQ(mcast_reduce(group_, contribution_.data(), nullptr, result_.data(), nullptr,
                         contribution_.size(), MCAST_BOR, MCAST_UINT8, &ends),
            MCAST_INPROGRESS);
  device_.on_call = [](const std::string& call) { calls.push_back(call); };
  drop();
  device_.on_call = {};
  const auto destroyed = std::ranges::find(calls, "destroy");
  const auto done = std::ranges::find(calls, "done");
  ASSERT_NE(done, calls.end());
  EXPECT_LT(destroyed - calls.begin(), done - calls.begin()) << "its queue pair writes no more";
  EXPECT_EQ(std::ranges::count(calls, "done"), 1);
}

// The call has returned, so the operation ends by done().
TEST_F(LongReduction, EndsOnceIfTheDeviceRefusesAContribution) {
  ASSERT_EQ(reduce(contribution_.data(), result_.data(), op_), MCAST_INPROGRESS);
  device_.sends_left = 0;
  deliver_next();
  deliver_next();
  progress();
  EXPECT_EQ(op_.calls, 1);
  EXPECT_EQ(op_.status, MCAST_ERR_FABRIC);
  EXPECT_THAT(attr().reason, HasSubstr("the device refused a contribution"));
}

TEST_F(LongReduction, EndsOnceIfTheDeviceRefusesItsFirstContribution) {
  device_.sends_left = 0;
  EXPECT_EQ(reduce(contribution_.data(), result_.data(), op_), MCAST_INPROGRESS);
  progress();
  EXPECT_EQ(op_.calls, 1);
  EXPECT_EQ(op_.status, MCAST_ERR_FABRIC);
}

TEST_F(ReductionLaneOverFake, OfALongOneKeepsToTheQueueOnTheWay) {
  become_active(4);
  std::vector<char> memory(30 * kMtu);
  ASSERT_EQ(mcast_reduce(group_, memory.data(), nullptr, memory.data(), nullptr, memory.size(),
                         MCAST_BOR, MCAST_UINT8, &op_),
            MCAST_INPROGRESS);
  EXPECT_EQ(pair().sends.size(), 4u);
  complete_send();
  EXPECT_EQ(pair().sends.size(), 4u);
  inject_window(wire::MrpType::kRefresh, 1);
  complete_send();
  complete_send();
  EXPECT_EQ(pair().sends.size(), 1u);
  EXPECT_TRUE(pair().sends.front().is_signaled) << "or the next would never follow";
}

}  // namespace
}  // namespace cepheus::mcast
