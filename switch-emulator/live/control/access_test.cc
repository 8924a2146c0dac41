#include "switch-emulator/live/control/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/test_fabric.h"

namespace cepheus::live {
namespace {

using testing::HasSubstr;

constexpr uid_t kStranger = 12345;

TEST(Access, IsForTheOwnerAndRootUnlessUsersAreNamed) {
  const auto access = Access::of({});
  ASSERT_TRUE(access);
  EXPECT_TRUE(access->may_attach(geteuid()));
  EXPECT_TRUE(access->may_command(0));
  EXPECT_FALSE(access->may_attach(kStranger));
  EXPECT_EQ(access->socket_mode(), 0600u);
}

TEST(Access, LetsNamedUsersAttachButNotCommand) {
  const auto access = Access::of({"root", std::to_string(kStranger)});
  ASSERT_TRUE(access);
  EXPECT_TRUE(access->may_attach(kStranger));
  EXPECT_FALSE(access->may_command(kStranger));
  EXPECT_FALSE(access->may_attach(kStranger + 1));
  EXPECT_EQ(access->socket_mode(), 0666u);
}

TEST(Access, NamesAUserThatDoesNotExist) {
  const auto access = Access::of({"nobody-of-that-name"});
  ASSERT_FALSE(access);
  EXPECT_THAT(access.error().text, HasSubstr("no user 'nobody-of-that-name'"));
}

// Runs `body` as another user, in its own process; returns its exit code.
template <typename Body>
int as_user(uid_t user, Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(setuid(user) == 0 ? body() : 99);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Access, DistinguishesUsersByTheirKernelCredentials) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can play other users: run the tests as root";
  net::Topology topology = net::Topology::star(2);
  topology.users = {std::to_string(kStranger)};
  TestFabric fabric(topology);
  const auto attaches = [&] { return fabric::HostPort::attach({fabric.socket(), ""}) ? 0 : 1; };
  const auto stops = [&] { return send_request(fabric.socket(), {{"ask", "stop"}}) ? 0 : 1; };
  const auto looks = [&] { return send_request(fabric.socket(), {{"ask", "status"}}) ? 0 : 1; };
  EXPECT_EQ(as_user(kStranger, attaches), 0);
  EXPECT_EQ(as_user(kStranger, looks), 0);
  EXPECT_EQ(as_user(kStranger, stops), 1) << "it may look, no more";
  EXPECT_EQ(as_user(kStranger + 1, attaches), 1);
  EXPECT_EQ(as_user(kStranger + 1, looks), 1);
  EXPECT_EQ(fabric.status().refused_users, 2u);
}

}  // namespace
}  // namespace cepheus::live
