// The topology file read again while a fabric runs: accepted and refused changes.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/test_group.h"

namespace cepheus::live {
namespace {

using testing::HasSubstr;

// A file that changes while the fabric runs.
class ChangingTopology {
 public:
  explicit ChangingTopology(std::string text) : text_(std::move(text)) {}
  void become(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  wire::Result<net::Topology> read() {
    const std::lock_guard lock(mutex_);
    return net::Topology::from_toml(text_);
  }
  LiveOptions options() {
    LiveOptions options;
    options.reread = [this] { return read(); };
    return options;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

// Three hosts at s0, which has these settings.
std::string three_hosts(const std::string& settings = "") {
  const std::string file = net::Topology::star(3).to_toml(), name = "name = \"s0\"\n";
  const std::size_t behind = file.find(name) + name.size();
  return file.substr(0, behind) + settings + file.substr(behind);
}
std::string of_users(std::vector<std::string> users) {
  net::Topology topology = net::Topology::star(3);
  topology.users = std::move(users);
  return topology.to_toml();
}

std::string reload(const TestFabric& fabric) {
  const auto answer = send_request(fabric.socket(), {{"ask", "reload"}});
  return answer ? (*answer)["changed"].dump() : answer.error().text;
}

TEST(Reload, ChangesLimitsUnderAGroupThatGoesOn) {
  ChangingTopology file(three_hosts("max_groups = 8\n"));
  TestFabric fabric(*file.read(), file.options());
  LiveGroup group(fabric, 3);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  group.transmit(0);
  EXPECT_EQ(reload(fabric), "[]");
  file.become(three_hosts("max_groups = 0\nage = \"9min\"\n"));
  EXPECT_EQ(reload(fabric), R"(["switch s0: age = \"9min\"","switch s0: max_groups = 0"])");
  group.transmit(1);
  const auto status = fabric.status();
  ASSERT_EQ(status.switches[0].groups.size(), 1u);
  EXPECT_TRUE(status.switches[0].groups[0].active);
  EXPECT_EQ(reload(fabric), "[]") << "that configuration runs now";
  file.become(three_hosts());
  EXPECT_EQ(reload(fabric),
            R"(["switch s0: age is no longer set","switch s0: max_groups is no longer set"])");
}

TEST(Reload, OpensTheSocketsToUsersAndClosesThemAgain) {
  ChangingTopology file(three_hosts());
  TestFabric fabric(*file.read(), file.options());
  const auto mode = [&](const std::string& path) {
    struct stat there {};
    EXPECT_EQ(stat(path.c_str(), &there), 0);
    return there.st_mode & 0777u;
  };
  EXPECT_EQ(mode(fabric.socket()), 0600u);
  EXPECT_EQ(mode(control_path(fabric.socket())), 0600u);
  file.become(of_users({"12345"}));
  EXPECT_EQ(reload(fabric), R"(["users = [\"12345\"]"])");
  EXPECT_EQ(mode(fabric.socket()), 0666u);
  EXPECT_EQ(mode(control_path(fabric.socket())), 0666u);
  file.become(three_hosts());
  EXPECT_EQ(reload(fabric), R"(["users is no longer set"])");
  EXPECT_EQ(mode(fabric.socket()), 0600u);
  EXPECT_EQ(mode(control_path(fabric.socket())), 0600u);
}

TEST(Reload, ChangesNothingWhereARestartIsNeededOrTheFileIsWrong) {
  ChangingTopology file(three_hosts("max_groups = 8\n"));
  TestFabric fabric(*file.read(), file.options());
  file.become(three_hosts("max_groups = 4\nwrite_mode = \"none\"\n") +
              "[[host]]\nname = \"h3\"\naddress = \"10.0.0.4\"\n");
  EXPECT_THAT(
      reload(fabric),
      HasSubstr("nothing was changed, because a restart is needed for switch s0: write_mode = "
                "\"none\"; host h3 is new"));
  file.become(three_hosts("max_groups = many\n"));
  EXPECT_THAT(reload(fabric), HasSubstr("topology:"));
  file.become(three_hosts("gate_age = \"1s\"\n"));
  EXPECT_THAT(reload(fabric), HasSubstr("gate_age = \"1s\" is not above 6200ms"));
  file.become(of_users({"nobody-is-called-so"}));
  EXPECT_THAT(reload(fabric), HasSubstr("there is no user 'nobody-is-called-so'"));
  file.become(three_hosts("max_groups = 8\n"));
  EXPECT_EQ(reload(fabric), "[]") << "the limit is still 8";
  TestFabric unnamed(net::Topology::star(1));
  EXPECT_THAT(reload(unnamed), HasSubstr("no topology file to read again"));
}

}  // namespace
}  // namespace cepheus::live
