#include "controller/connections/daemon/daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cepheus::connections {
namespace {

TEST(Daemon, ReportsAPathForProgramsThatNoSocketCanHave) {
  for (const std::string& path : {std::string(), std::string(108, 'p')}) {
    DaemonSettings settings;
    settings.listen = "127.0.0.1:0";
    settings.socket = path;
    const auto ended = Daemon(settings).run();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, wire::ErrorCode::kInvalid);
    EXPECT_THAT(ended.error().text, testing::HasSubstr("has 1 to 107 characters"));
  }
}

}  // namespace
}  // namespace cepheus::connections
