#include "libmcast/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace cepheus::mcast {
namespace {

using ::testing::HasSubstr;

mcast_context_params_t defaults() { return MCAST_CONTEXT_PARAMS_INIT; }

std::string error_of(const mcast_context_params_t& params) {
  const auto config = context_config(&params);
  if (config) return "";
  EXPECT_EQ(config.error().status, MCAST_ERR_INVALID);
  return config.error().text;
}

TEST(ContextParameters, TakeTheFabricsKeyFromTheEnvironment) {
  const std::string path = "/tmp/cepheus-key-" + std::to_string(getpid());
  ::setenv("CEPHEUS_KEY_FILE", path.c_str(), 1);
  EXPECT_THAT(error_of(defaults()), HasSubstr("can't read " + path));
  std::ofstream(path) << "secret";
  EXPECT_THAT(error_of(defaults()), HasSubstr("openssl rand -hex 32"));
  std::ofstream(path) << "000102030405060708090a0b0c0d0e0f\n";
  EXPECT_EQ(error_of(defaults()), "");
  EXPECT_NE(context_config(nullptr)->key, nullptr);
  ::unsetenv("CEPHEUS_KEY_FILE");
  std::filesystem::remove(path);
}

TEST(ContextParameters, HaveDefaults) {
  for (const auto& config : {context_config(nullptr), [] {
                               const auto params = defaults();
                               return context_config(&params);
                             }()}) {
    ASSERT_TRUE(config);
    EXPECT_TRUE(config->device.name.empty());
    EXPECT_EQ(config->device.gid_index, -1);
    EXPECT_EQ(config->mrp_port, 18516);
    EXPECT_EQ(config->register_timeout, std::chrono::seconds(1));
    EXPECT_FALSE(config->register_silence);
    EXPECT_EQ(config->pool.base, wire::Ipv4(198, 18, 0, 0));
    EXPECT_EQ(config->pool.length, 15);
    EXPECT_EQ(config->max_eager_memory, std::size_t{64} << 20);
  }
}

TEST(ContextParameters, LimitTheSilenceOfARegistrationIfSet) {
  auto params = defaults();
  params.register_timeout_ms = 20'000;
  params.register_silence_ms = 1000;
  const auto config = context_config(&params);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->register_timeout, std::chrono::seconds(20));
  EXPECT_EQ(config->register_silence, std::chrono::seconds(1));
}

TEST(ContextParameters, AreRefusedWithTheRemedy) {
  auto params = defaults();
  params.struct_size = 0;
  EXPECT_THAT(error_of(params), HasSubstr("_INIT macro"));
  params = defaults();
  params.mrp_port = 4791;
  EXPECT_THAT(error_of(params), HasSubstr("RoCE's own"));
  params = defaults();
  params.gid_index = 256;
  EXPECT_THAT(error_of(params), HasSubstr("use -1"));
  params = defaults();
  params.traffic_class = 256;
  EXPECT_THAT(error_of(params), HasSubstr("traffic_class 256: use 0 to 255"));
  params = defaults();
  params.service_level = 8;
  EXPECT_THAT(error_of(params), HasSubstr("service_level 8: use 0 to 7"));
  params = defaults();
  params.flow_label = 1 << 20;
  EXPECT_THAT(error_of(params), HasSubstr("flow_label 1048576: use 0 to 1048575"));
  params = defaults();
  params.link_outage_ms = 30'001;
  EXPECT_THAT(error_of(params), HasSubstr("use at most 30000"));
  for (const char* pool : {"198.18.0.0", "198.18.0.1/15", "239.0.0.0/8", "240.0.0.0/8",
                           "127.0.0.0/8", "0.0.0.0/0", ""}) {
    params = defaults();
    params.mcst_pool = pool;
    EXPECT_THAT(error_of(params), HasSubstr("use a unicast block")) << pool;
  }
}

TEST(MemoryBudget, TakesNoMoreThanTheLimit) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.take(60));
  EXPECT_FALSE(budget.take(41));
  EXPECT_TRUE(budget.take(40));
  EXPECT_FALSE(budget.take(1));
  budget.give_back(60);
  EXPECT_EQ(budget.used(), 40u);
  EXPECT_TRUE(budget.take(60));
}

}  // namespace
}  // namespace cepheus::mcast
