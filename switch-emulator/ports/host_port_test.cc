// Time limits of a client for a fabric's answer: a running fabric may be late, a stopped one not.
#include "switch-emulator/ports/host_port.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "switch-emulator/ports/handshake.h"

namespace cepheus::fabric {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class HostPortWaits : public testing::Test {
 protected:
  void SetUp() override {
    char directory[] = "/tmp/cepheus-port-XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    directory_ = directory;
    options_.fabric = directory_ + "/fabric";
    options_.timeout = milliseconds(50);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  UniqueFd listen() const {
    UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, options_.fabric.c_str(), options_.fabric.size() + 1);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd.get(), 1), 0);
    return fd;
  }

  std::string directory_;
  HostPort::Options options_;
};

TEST_F(HostPortWaits, ForAFabricThatRunsAndAnswersLate) {
  const UniqueFd listener = listen();
  std::thread late([&] {
    const UniqueFd client(accept(listener.get(), nullptr, nullptr));
    pollfd given_up{client.get(), POLLRDHUP, 0};
    const auto late_by = 10 * options_.timeout;
    EXPECT_EQ(poll(&given_up, 1, static_cast<int>(late_by.count())), 0);
    Welcome welcome;
    welcome.status = WelcomeStatus::kHostTaken;
    welcome.text = "late, but here";
    send_message(client.get(), encode(welcome));
  });
  const auto port = HostPort::attach(options_);
  late.join();
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().text, "late, but here");
}

TEST_F(HostPortWaits, NoLongerThanItsLimitForThat) {
  const UniqueFd listener = listen();
  options_.busy_timeout = milliseconds(120);
  const auto port = HostPort::attach(options_);
  ASSERT_FALSE(port);
  EXPECT_THAT(port.error().text, testing::ContainsRegex("did not answer within [0-9]{3,4} ms"))
      << "without that limit: 30000 ms";
}

TEST_F(HostPortWaits, ShortlyForAFabricThatIsStopped) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t fabric = fork();
  if (fabric == 0) {
    const UniqueFd listener = listen();
    (void)!write(pipe_fds[1], "", 1);
    raise(SIGSTOP);
    _exit(0);
  }
  char ready;
  ASSERT_EQ(read(pipe_fds[0], &ready, 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(fabric, &status, WUNTRACED), fabric);
  const auto began = std::chrono::steady_clock::now();
  const auto port = HostPort::attach(options_);
  EXPECT_LT(std::chrono::steady_clock::now() - began, options_.busy_timeout / 2);
  ASSERT_FALSE(port);
  EXPECT_THAT(port.error().text, HasSubstr("is its process stopped"));
  kill(fabric, SIGKILL);
  waitpid(fabric, &status, 0);
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

}  // namespace
}  // namespace cepheus::fabric
