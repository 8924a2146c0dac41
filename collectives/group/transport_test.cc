#include "collectives/group/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <utility>
#include <vector>

#include "collectives/core/parameters.h"
#include "collectives/fakes/fake_fabric.h"
#include "collectives/fakes/fake_job.h"

namespace cepheus::coll {
namespace {

// A broadcast meanwhile does without multicast.
TEST(OpeningAgain, MakesNobodyWait) {
  parameters().carrier = static_cast<int>(Carrier::kDirect);
  Transport& transport = Transport::instance();
  fake::Fabric fabric;
  std::string why;
  fabric.is_port_up = false;
  fabric.on_open = [] { return MCAST_ERR_TIMED_OUT; };
  while (transport.open(why, true) == MCAST_ERR_AGAIN) {
  }
  ASSERT_EQ(transport.open(why, false), MCAST_ERR_TIMED_OUT);

  std::promise<mcast_status_t> answer;
  fabric.is_port_up = true;
  fabric.on_open = [outcome = answer.get_future().share()] { return outcome.get(); };
  EXPECT_EQ(transport.open(why, true), MCAST_ERR_AGAIN);
  EXPECT_EQ(transport.open(why, false), MCAST_ERR_AGAIN);
  EXPECT_THAT(why, testing::HasSubstr("has not answered yet"));
  EXPECT_EQ(transport.host_address(), 0u);
  answer.set_value(MCAST_OK);
  mcast_status_t status = MCAST_ERR_AGAIN;
  while (status == MCAST_ERR_AGAIN) status = transport.open(why, false);
  EXPECT_EQ(status, MCAST_OK);
  transport.close();
}

// The test program is in another directory than UCX's part.
TEST(Opening, NamesAMissingTransportThatTheUserHasChosen) {
  parameters().carrier = static_cast<int>(Carrier::kUcx);
  std::string why;
  mcast_status_t status = MCAST_ERR_AGAIN;
  while (status == MCAST_ERR_AGAIN) status = Transport::instance().open(why, true);
  EXPECT_EQ(status, MCAST_ERR_NO_DEVICE);
  EXPECT_THAT(why, testing::HasSubstr("/libcepheus-ucx.so"));
  parameters() = {};
}

// A job with another way gives up a silent fabric soon. It waits for a busy fabric as long as any
// job.
TEST(Opening, LimitsTheFabricsSilenceOnlyIfThereIsAnotherWay) {
  fake::use_small_sizes();
  fake::Fabric fabric;
  fabric.is_port_up = false;  // it is opened anew each time
  const auto limits = [&fabric] {
    std::string why;
    while (Transport::instance().open(why, true) != MCAST_OK) {
    }
    const mcast_context_params_t& params = fabric.context_params;
    return std::pair(params.register_timeout_ms, params.register_silence_ms);
  };
  EXPECT_EQ(limits(), std::pair(20'000u, 1000u));
  parameters().mode = static_cast<int>(Mode::kRequire);
  EXPECT_EQ(limits(), std::pair(20'000u, 0u));
  parameters().register_timeout_ms = 3000;
  EXPECT_EQ(limits(), std::pair(3000u, 0u));
  parameters().mode = static_cast<int>(Mode::kTry);
  EXPECT_EQ(limits(), std::pair(3000u, 0u));
}

// UCX's objects take one thread at a time, and another one may progress all groups.
TEST(Registration, BeginsUnderTheTransportsMutex) {
  fake::use_small_sizes();
  fake::Job job(2);
  std::vector<bool> is_held;
  job.fabric.on_lead = [&is_held] {
    const auto is_free = [] {
      return std::unique_lock(Transport::instance().mutex(), std::try_to_lock).owns_lock();
    };
    is_held.push_back(!std::async(std::launch::async, is_free).get());
  };
  for (const std::size_t bytes : {100u, 1000u}) {  // of both lanes
    job.begin_all(0, bytes);
    ASSERT_TRUE(job.run());
  }
  job.reduce_all({Collective::kAllreduce, 8});
  ASSERT_TRUE(job.run());
  EXPECT_THAT(is_held, testing::ElementsAre(true, true, true));
  EXPECT_TRUE(job.close());
}

}  // namespace
}  // namespace cepheus::coll
