// Several contexts in one process, memory that outlives them, and fork() in the middle of it, over a
// device that the test plays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mcast/query.h>
#include <mcast/wait.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

#include "libmcast/fake_group.h"
#include "wire/mrp_key.h"

namespace cepheus::mcast {
namespace {

class SecondContext : public FakeGroup {
 protected:
  SecondContext() { open_second(MCAST_CONTEXT_PARAMS_INIT); }
  ~SecondContext() override {
    if (second_ != nullptr) mcast_context_destroy(second_);
  }
  void open_second(const mcast_context_params_t& params) {
    if (second_ != nullptr) mcast_context_destroy(second_);
    ASSERT_EQ(mcast_context_create(&params, &second_), MCAST_OK) << mcast_last_error();
  }
  static std::uint64_t registered_bytes(mcast_context_h context) {
    mcast_context_attr_t attr = MCAST_CONTEXT_ATTR_INIT;
    EXPECT_EQ(mcast_context_query(context, &attr), MCAST_OK);
    return attr.registered_bytes;
  }
  mcast_context_h second_ = nullptr;
};

// A program has a context for MPI and one for its volume, and one of them has used up its eager
// buffers.
TEST_F(SecondContext, HasABoundOfEagerMemoryOfItsOwn) {
  mcast_context_params_t narrow = MCAST_CONTEXT_PARAMS_INIT;
  narrow.max_eager_memory = 200'000;
  open_second(narrow);
  const auto fill = [](mcast_context_h context) {
    mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
    params.max_eager = 1000;
    mcast_group_h group = nullptr;
    int made = 0;
    while (made < 4 && mcast_group_create(context, &params, &group) == MCAST_OK) ++made;
    return made;
  };
  EXPECT_EQ(fill(second_), 1);
  EXPECT_EQ(fill(context_), 4) << "64 MiB are its own";
  EXPECT_EQ(fill(second_), 0);
}

TEST_F(SecondContext, HasAPathMtuOfItsOwn) {
  mcast_context_params_t narrow = MCAST_CONTEXT_PARAMS_INIT;
  narrow.path_mtu = 256;
  open_second(narrow);
  mcast_context_attr_t first = MCAST_CONTEXT_ATTR_INIT, second = MCAST_CONTEXT_ATTR_INIT;
  ASSERT_EQ(mcast_context_query(context_, &first), MCAST_OK);
  ASSERT_EQ(mcast_context_query(second_, &second), MCAST_OK);
  EXPECT_EQ(first.path_mtu, 1024u);
  EXPECT_EQ(second.path_mtu, 256u);
}

TEST_F(SecondContext, HasATrafficClassOfItsOwn) {
  mcast_context_params_t other = MCAST_CONTEXT_PARAMS_INIT;
  other.traffic_class = 184;
  other.service_level = 5;
  other.flow_label = 0xABCDE;
  open_second(other);
  const auto path_of = [&](mcast_context_h context) {
    const mcast_context_h before = std::exchange(context_, context);
    make_active(MCAST_LANE_BULK);
    const ibv_ah_attr path = pair().path;
    drop();
    context_ = before;
    return path;
  };
  const ibv_ah_attr usual = path_of(context_), own = path_of(second_);
  EXPECT_EQ(usual.grh.traffic_class, 106) << "as UCX's queue pairs";
  EXPECT_EQ(usual.sl, 0);
  EXPECT_EQ(usual.grh.flow_label, 0u);
  EXPECT_EQ(own.grh.traffic_class, 184);
  EXPECT_EQ(own.sl, 5);
  EXPECT_EQ(own.grh.flow_label, 0xABCDEu);
}

// One program on two fabrics: each context signs its messages with its own key.
TEST_F(SecondContext, SignsWithAKeyOfItsOwn) {
  const std::string path = "/tmp/cepheus-key-" + std::to_string(getpid());
  const std::string digits = "000102030405060708090a0b0c0d0e0f";
  std::ofstream(path) << digits << '\n';
  mcast_context_params_t keyed = MCAST_CONTEXT_PARAMS_INIT;
  keyed.key_file = path.c_str();
  open_second(keyed);
  std::filesystem::remove(path);
  const wire::MrpKey key = *wire::MrpKey::parse(digits);
  const auto is_signed = [&](mcast_context_h context) {
    const mcast_context_h before = std::exchange(context_, context);
    device_.datagrams.clear();
    make(MCAST_LANE_BULK);
    mcast_member_t names[] = {own(), own()};
    names[1].ipv4 = htonl(device_.address.value() + 1);
    EXPECT_EQ(mcast_group_lead(group_, names, 2), MCAST_OK) << mcast_last_error();
    from(context)->wait_for_calls();
    const bool verified = key.verify(device_.address, device_.datagrams.at(0)).has_value();
    drop();
    context_ = before;
    return verified;
  };
  EXPECT_TRUE(is_signed(second_));
  EXPECT_FALSE(is_signed(context_));
}

TEST_F(SecondContext, CountsItsOwnMemory) {
  const std::uint64_t before = registered_bytes(context_);
  mcast_mem_h memory = nullptr;
  ASSERT_EQ(mcast_mem_register(second_, buffer_, sizeof buffer_, &memory), MCAST_OK);
  EXPECT_EQ(registered_bytes(second_), sizeof buffer_);
  EXPECT_EQ(registered_bytes(context_), before);
  mcast_mem_deregister(memory);
  EXPECT_EQ(registered_bytes(second_), 0u);
}

// Each context has a thread of its own: neither waits for a callback of the other's.
TEST_F(SecondContext, MakesProgressWhileACallbackOfTheFirstTakesLong) {
  make_active(MCAST_LANE_BULK);
  struct SlowReceive : mcast_op_t {
    mcast_context_h other = nullptr;
    bool other_went_on = false;
  } receive;
  receive.other = second_;
  receive.done = [](mcast_op_t* op, mcast_status_t, size_t, std::uint32_t) {
    auto& self = *static_cast<SlowReceive*>(op);
    std::thread([&self] {
      mcast_progress_all(self.other);
      mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
      mcast_group_h group = nullptr;
      self.other_went_on = mcast_group_create(self.other, &params, &group) == MCAST_OK;
      mcast_group_destroy(group);
    }).join();
  };
  ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &receive), MCAST_INPROGRESS);
  deliver(kData, 5);
  EXPECT_TRUE(receive.other_went_on);
  drop();
}

TEST_F(SecondContext, ReportsTheReasonForItsDevice) {
  mcast_context_attr_t attr = MCAST_CONTEXT_ATTR_INIT;
  ASSERT_EQ(mcast_context_query(second_, &attr), MCAST_OK);
  EXPECT_STREQ(attr.device_why, "the only one");
}

TEST_F(SecondContext, RunsNoCallbackOfTheFirst) {
  make_active(MCAST_LANE_BULK);
  Op receive;
  ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &receive), MCAST_INPROGRESS);
  device_.deliver(pair(), "datadata", 5);
  for (int i = 0; i < 130; ++i) mcast_progress(second_);
  EXPECT_EQ(receive.calls, 0);
  progress();
  EXPECT_EQ(receive.calls, 1);
  drop();
}

TEST_F(SecondContext, LeavesTheFirstAsItIs) {
  make_active(MCAST_LANE_BULK);
  mcast_context_destroy(std::exchange(second_, nullptr));
  Op send;
  ASSERT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &send), MCAST_INPROGRESS);
  complete_send();
  EXPECT_EQ(send.status, MCAST_OK);
  drop();
}

TEST_F(SecondContext, HasMemoryThatServesNoGroupOfTheFirst) {
  make_active(MCAST_LANE_BULK);
  mcast_mem_h memory = nullptr;
  ASSERT_EQ(mcast_mem_register(second_, buffer_, sizeof buffer_, &memory), MCAST_OK);
  Op send;
  EXPECT_EQ(mcast_send(group_, buffer_, 8, memory, 1, &send), MCAST_ERR_INVALID);
  mcast_mem_deregister(memory);
  drop();
}

TEST_F(SecondContext, MayEndBeforeItsMemoryDoes) {
  const int before = device_.opened;
  mcast_mem_h memory = nullptr;
  ASSERT_EQ(mcast_mem_register(second_, buffer_, sizeof buffer_, &memory), MCAST_OK);
  const std::size_t regions = device_.regions;
  mcast_context_destroy(std::exchange(second_, nullptr));
  EXPECT_EQ(device_.opened, before) << "the memory is registered with it";
  mcast_mem_deregister(memory);
  EXPECT_EQ(device_.regions, regions - 1);
  EXPECT_EQ(device_.opened, before - 1);
}

// A device library's lock: taken by its calls, and by its own handler of fork().
std::mutex device_lock;
std::atomic<bool> is_forking{false}, is_opening{false};

void hold_device_across_forks() {
  pthread_atfork(
      [] {
        device_lock.lock();
        is_forking = true;
      },
      [] { device_lock.unlock(); }, [] { device_lock.unlock(); });
}

// While the device's lock is taken by fork(), another thread is about to take it in an open.
void open_while_forking() {
  alarm(20);  // a deadlock ends the test
  mcast_context_h first = nullptr;
  if (mcast_context_create(nullptr, &first) != MCAST_OK) _exit(2);
  hold_device_across_forks();  // as a provider does that is loaded by the first open
  fake::Device::instance().on_open = [] {
    is_opening = true;
    while (!is_forking) std::this_thread::yield();
    const std::lock_guard lock(device_lock);
  };
  mcast_context_h second = nullptr;
  std::thread opener([&] { mcast_context_create(nullptr, &second); });
  while (!is_opening) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    fake::Device::instance().on_open = nullptr;
    mcast_context_attr_t attr = MCAST_CONTEXT_ATTR_INIT;
    const bool refuses = mcast_context_query(first, &attr) == MCAST_ERR_INVALID;
    mcast_context_h own = nullptr;
    const bool serves = mcast_context_create(nullptr, &own) == MCAST_OK;
    if (serves) mcast_context_destroy(own);
    mcast_context_destroy(first);
    _exit(refuses && serves ? 0 : 1);
  }
  opener.join();
  int state = 0;
  waitpid(child, &state, 0);
  _exit(second != nullptr && WIFEXITED(state) ? WEXITSTATUS(state) : 3);
}

TEST(ForkDeathTest, WaitsForNobodyWhoOpensAContext) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(open_while_forking(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cepheus::mcast
