// Strangers, silent peers and excessive requests at a live fabric's sockets: packets and honest
// clients go on.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/control/attach_server.h"
#include "switch-emulator/live/control/control_server.h"
#include "switch-emulator/live/control/descriptor_limit.h"
#include "switch-emulator/live/control/test_lingering.h"
#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/test_group.h"

namespace cepheus::live {
namespace {

constexpr std::chrono::seconds kLongLimit(60);  // where nothing shall expire

using fabric::UniqueFd;
using fabric::Welcome;
using fabric::WelcomeStatus;
using testing::HasSubstr;

constexpr uid_t kStranger = 12345;

std::optional<Welcome> await_welcome(int fd) {
  const auto answer = await_message(fd);
  return answer ? fabric::decode_welcome(answer->data) : std::nullopt;
}

// Runs `body` in its own process; returns its exit code.
template <typename Body>
int in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

UniqueFd connect_control(const TestFabric& fabric) {
  return connect_to(control_path(fabric.socket()), SOCK_STREAM);
}

// Many requests, no two consecutive ones equal.
std::string questions(int count) {
  std::string all;
  for (int n = 0; n < count; ++n) {
    all += "{\"ask\": " + std::string(static_cast<std::size_t>(n % 2), ' ') + "\"status\"}\n";
  }
  return all;
}

bool request_all(int fd, const std::string& text) {
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

// Number of lines that have arrived.
class Answers {
 public:
  explicit Answers(int fd) : fd_(fd) {}
  std::size_t count() {
    std::vector<char> buffer(1 << 20);
    for (ssize_t n; (n = recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0;) {
      lines_ += static_cast<std::size_t>(std::count(buffer.begin(), buffer.begin() + n, '\n'));
    }
    return lines_;
  }

 private:
  int fd_;
  std::size_t lines_ = 0;
};

long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  }
  return 0;
}

bool has_hung_up(int fd) {
  pollfd end{fd, POLLRDHUP, 0};
  return poll(&end, 1, 0) > 0;
}

TEST(ControlThread, AnswersWhilePacketsPass) {
  TestFabric fabric(net::Topology::star(512));
  LiveGroup group(fabric, 3);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  constexpr std::size_t kQuestions = 20;
  const UniqueFd asker = connect_control(fabric);
  Answers answers(asker.get());
  std::uint32_t packets = 0;
  ASSERT_TRUE(request_all(asker.get(), questions(kQuestions)));
  while (answers.count() < kQuestions) ASSERT_NO_FATAL_FAILURE(group.transmit(packets++));
  // If they were answered between packets, they would leave time for none.
  EXPECT_GT(packets, kQuestions);
}

// A peer that sends requests without end gets less of a core than packets do.
TEST(ControlThread, GivesWayToPackets) {
  TestFabric fabric(net::Topology::star(1));
  fabric.status();  // its thread runs
  int threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "cepheus-control") continue;
    ++threads;
    EXPECT_GE(getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoi(task.path().filename()))), 10);
  }
  EXPECT_EQ(threads, 1);
}

TEST(ControlThread, KeepsFewAnswersForPeersThatDoNotRead) {
  TestFabric fabric(net::Topology::star(256));
  const long before = resident_kib();
  std::vector<UniqueFd> deaf;
  for (int n = 0; n < 40; ++n) {
    deaf.push_back(connect_control(fabric));
    ASSERT_TRUE(request_all(deaf.back().get(), questions(100)));
  }
  const auto until = std::chrono::steady_clock::now() + kTimeLimit;
  bool is_answered = false;  // each attempt has its own, shorter time limit
  while (!is_answered && std::chrono::steady_clock::now() < until) {
    is_answered = send_request(fabric.socket(), {{"ask", "status"}}).has_value();
  }
  EXPECT_TRUE(is_answered);
  EXPECT_LT(resident_kib() - before, 200 << 10);
  const auto gone = std::count_if(deaf.begin(), deaf.end(),
                                  [](const UniqueFd& fd) { return has_hung_up(fd.get()); });
  EXPECT_GE(gone, 40 - static_cast<long>(ControlServer::kMaxOfOneUser));
}

TEST(ControlThread, AnswersEachRepeatedRequest) {
  TestFabric fabric(net::Topology::star(2));
  const UniqueFd asker = connect_control(fabric);
  Answers answers(asker.get());
  std::string text;
  for (int n = 0; n < 1000; ++n) text += "{\"ask\": \"status\"}\n";
  ASSERT_TRUE(request_all(asker.get(), text));
  const auto until = std::chrono::steady_clock::now() + kTimeLimit;
  while (answers.count() < 1000 && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  EXPECT_EQ(answers.count(), 1000u);
}

TEST(ControlThread, RefusesAStrangerWhenItConnects) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can play other users: run the tests as root";
  net::Topology topology = net::Topology::star(1);
  topology.users = {"root"};
  TestFabric fabric(topology);
  EXPECT_EQ(in_child([&] {
              if (setuid(kStranger) != 0) return 99;
              const UniqueFd silent = connect_to(fabric.socket());
              const auto welcome = await_welcome(silent.get());
              if (!welcome || welcome->status != WelcomeStatus::kFailed) return 1;
              return welcome->text.find("may not attach") != std::string::npos ? 0 : 2;
            }),
            0);
  EXPECT_EQ(fabric.status().refused_users, 1u);
}

// Runs `body` with another user id for this thread alone, which peers of new connections see.
template <typename Body>
auto as_stranger(Body&& body) {
  syscall(SYS_setresuid, -1, kStranger, -1);
  auto result = body();
  syscall(SYS_setresuid, -1, 0, -1);
  return result;
}

TEST(ControlThread, DisconnectsUsersThatAReloadRevokes) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can play other users: run the tests as root";
  net::Topology topology = net::Topology::star(1);
  topology.users = {std::to_string(kStranger)};
  LiveOptions options;
  options.reread = [] { return net::Topology::star(1); };
  options.time_limit = kLongLimit;
  TestFabric fabric(topology, options);
  const UniqueFd pending_peer = as_stranger([&] { return connect_to(fabric.socket()); });
  const UniqueFd asker = as_stranger([&] { return connect_control(fabric); });
  char byte = 0;
  ASSERT_TRUE(request_all(asker.get(), questions(1)));
  do {
    ASSERT_EQ(recv(asker.get(), &byte, 1, 0), 1);
  } while (byte != '\n');

  ASSERT_TRUE(send_request(fabric.socket(), {{"ask", "reload"}}));
  request_all(asker.get(), questions(1));  // may fail: it is closed
  EXPECT_LE(recv(asker.get(), &byte, 1, 0), 0);
  fabric::send_message(pending_peer.get(), encode(fabric::AttachRequest{.host = "h0"}));
  const auto welcome = await_welcome(pending_peer.get());
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->status, WelcomeStatus::kFailed);
  EXPECT_THAT(welcome->text, HasSubstr("may not attach"));
}

// Strangers hold as many connections as possible, and make new ones all the time.
TEST(ControlThread, LetsHonestClientsInWhileStrangersConnect) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can play other users: run the tests as root";
  net::Topology topology = net::Topology::star(2);
  topology.users = {"root"};
  TestFabric fabric(topology);
  std::vector<pid_t> strangers;
  for (int n = 0; n < 2; ++n) {
    const pid_t child = fork();
    if (child == 0) {
      if (setuid(kStranger) != 0) _exit(99);
      std::vector<UniqueFd> held(500);
      for (std::size_t i = 0;; i = (i + 1) % held.size()) {
        try {
          held[i] = connect_to(fabric.socket());
        } catch (const std::runtime_error&) {  // its queue is full
        }
      }
    }
    strangers.push_back(child);
  }
  fabric.status_when([](const FabricStatus& s) { return s.refused_users > 1000; });
  for (int n = 0; n < 20; ++n) {
    fabric::HostPort::Options options{fabric.socket(), "h1"};
    options.timeout = kLongLimit;
    EXPECT_TRUE(fabric::HostPort::attach(options)) << n;
  }
  for (const pid_t child : strangers) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

TEST(ControlThread, DisconnectsSilentPeers) {
  LiveOptions options;
  options.time_limit = std::chrono::milliseconds(50);
  TestFabric fabric(net::Topology::star(1), options);
  const UniqueFd silent = connect_to(fabric.socket());
  const auto welcome = await_welcome(silent.get());
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->status, WelcomeStatus::kAgain);
}

TEST(ControlThread, DisconnectsTheLongestSilentPeerWhenOthersNeedThePlace) {
  LiveOptions options;
  options.time_limit = kLongLimit;
  TestFabric fabric(net::Topology::star(1), options);
  std::vector<UniqueFd> silent;
  for (std::size_t n = 0; n < AttachServer::kMaxPending + 1; ++n) {
    silent.push_back(connect_to(fabric.socket()));
  }
  const auto welcome = await_welcome(silent.front().get());
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->status, WelcomeStatus::kAgain);
  EXPECT_FALSE(has_hung_up(silent[1].get()));
  EXPECT_TRUE(fabric::HostPort::attach({fabric.socket(), "h0"}));
}

// In its own process, because it uses up all descriptors.
TEST(ControlThread, NotifiesAPeerThatDescriptorsHaveRunOut) {
  EXPECT_EQ(
      in_child([] {
        TestFabric fabric(net::Topology::star(4));
        const auto h0 = fabric.attach("h0");
        std::vector<UniqueFd> mine;  // connections wait for the limit
        for (int n = 0; n < 3; ++n) {
          mine.emplace_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        }
        fabric.status();  // the fabric has finished its grants
        rlimit none_left{};
        getrlimit(RLIMIT_NOFILE, &none_left);
        none_left.rlim_cur = static_cast<rlim_t>(UniqueFd(dup(0)).get());
        if (setrlimit(RLIMIT_NOFILE, &none_left) != 0) return 98;
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        fabric.socket().copy(address.sun_path, sizeof address.sun_path - 1);
        for (const UniqueFd& fd : mine) {
          if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
            return 97;
          }
          const auto welcome = await_welcome(fd.get());
          if (!welcome || welcome->text.find("descriptors") == std::string::npos) return 1;
        }
        return h0->is_connected() ? 0 : 2;
      }),
      0);
}

TEST(DescriptorLimit, IsRaisedAsFarAsItMayBe) {
  EXPECT_EQ(in_child([] {
              rlimit limit{};
              getrlimit(RLIMIT_NOFILE, &limit);
              limit.rlim_cur = 64;
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 99;
              const std::size_t raised = raise_descriptor_limit();
              getrlimit(RLIMIT_NOFILE, &limit);
              return raised == limit.rlim_max && limit.rlim_cur == limit.rlim_max ? 0 : 1;
            }),
            0);
}

// The last process to close a descriptor from a peer waits for it, if it is a TCP connection that
// lingers.
TEST(ControlThread, IsNotBlockedByLingeringDescriptors) {
  TestFabric fabric(net::Topology::star(1));
  Lingering connection;
  const UniqueFd hostile = connect_to(fabric.socket());
  const std::array<int, 1> along{connection.mine.get()};
  const bool is_sent = fabric::send_message(hostile.get(), std::vector<std::uint8_t>(8), along);
  if (is_sent) connection.mine.reset();
  EXPECT_TRUE(fabric::HostPort::attach({fabric.socket(), "h0"}));
}

// The fabric does not read a launcher's later messages: they lie in its socket until the end.
TEST(ControlThread, EndsDespiteLingeringDescriptors) {
  TestFabric fabric(net::Topology::star(1));
  Lingering connection;
  const UniqueFd launcher = connect_to(fabric.socket());
  ASSERT_TRUE(
      fabric::send_message(launcher.get(), encode(fabric::HostsWanted{.number = 1, .names = ""})));
  ASSERT_TRUE(await_message(launcher.get()));
  const std::array<int, 1> along{connection.mine.get()};
  const bool is_sent = fabric::send_message(launcher.get(), std::vector<std::uint8_t>(8), along);
  if (!is_sent)
    GTEST_SKIP()
        << "this kernel refuses such descriptors, as Linux 6.16 does: run the test on an older one";
  connection.mine.reset();
  auto stopped = std::async(std::launch::async, [&] { fabric.stop(); });
  const bool has_stopped = stopped.wait_for(kTimeLimit) == std::future_status::ready;
  EXPECT_TRUE(has_stopped);
  if (!has_stopped) connection.peer.reset();  // lets it go on
}

}  // namespace
}  // namespace cepheus::live
