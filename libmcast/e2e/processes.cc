#include "libmcast/e2e/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "switch-emulator/live/status/control_protocol.h"

namespace cepheus::mcast::e2e {
namespace {

constexpr int kAnswerMs = 60'000;
constexpr auto kToEnd = 30s;

std::system_error system_error(const char* what) {
  return std::system_error(errno, std::generic_category(), what);
}

std::string new_directory() {
  std::string path = std::filesystem::temp_directory_path() / "mcast-e2e-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) throw system_error("mkdtemp");
  return path;
}

std::pair<int, int> socket_pair() {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    throw system_error("socketpair");
  }
  return {fds[0], fds[1]};
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

std::string host_text(int index) {
  return "[[host]]\nname = \"h" + std::to_string(index) + "\"\naddress = \"10.0.0." +
         std::to_string(index + 1) + "\"\n";
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, int keep_fd,
                 const std::vector<std::string>& environment) {
  std::vector<std::string> args = arguments;
  std::vector<std::string> env = environment;
  for (char** e = environ; *e != nullptr; ++e) {
    if (std::string_view(*e).rfind("CEPHEUS_", 0) != 0) env.emplace_back(*e);
  }
  const std::vector<char*> argv = pointers(args), envp = pointers(env);
  pid_ = fork();
  if (pid_ < 0) throw system_error("fork");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (keep_fd == 3) {
    fcntl(3, F_SETFD, 0);
  } else {
    dup2(keep_fd, 3);
  }
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

Process::~Process() { kill(); }

void Process::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int Process::wait(std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int state = 0;
  while (waitpid(pid_, &state, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) return -1;
    poll(nullptr, 0, 10);
  }
  pid_ = -1;
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

Fabric::Fabric(const std::vector<std::string>& arguments) : Fabric(arguments, "") {}

Fabric Fabric::lossy(int hosts, double loss, const std::string& more) {
  std::string text = more + "[link]\nloss = " + std::to_string(loss) + "\n";
  for (int i = 0; i < hosts; ++i) text += host_text(i);
  return Fabric({}, text);
}

Fabric Fabric::of_two_switches(const std::string& settings, const std::string& more) {
  std::string text = more;
  for (const char* const name : {"s0", "s1"}) {
    text += std::string("[[switch]]\nname = \"") + name + "\"\n" + settings;
  }
  for (int i = 0; i < 4; ++i) {
    text += host_text(i) + "switch = \"s" + std::to_string(i / 2) + "\"\n";
  }
  return Fabric({}, text + "[[trunk]]\nbetween = [\"s0\", \"s1\"]\n");
}

Fabric::Fabric(const std::vector<std::string>& arguments, const std::string& topology)
    : directory_(new_directory()), socket_(directory_ + "/fabric") {
  std::vector<std::string> args = {CEPHEUS_SWITCH, "--fabric", socket_, "--ready-fd", "3"};
  args.insert(args.end(), arguments.begin(), arguments.end());
  if (!topology.empty()) {
    const std::string file = directory_ + "/topology.toml";
    std::ofstream(file) << topology;
    args.insert(args.end(), {"--topology", file});
  }
  std::array<int, 2> ready{};
  if (pipe2(ready.data(), O_CLOEXEC) != 0) throw system_error("pipe2");
  switch_ = std::make_unique<Process>(args, ready[1], std::vector<std::string>{});
  close(ready[1]);
  pollfd fd{ready[0], POLLIN, 0};
  char line[256];
  const bool serving = poll(&fd, 1, kAnswerMs) == 1 && read(ready[0], line, sizeof line) > 0;
  close(ready[0]);
  if (!serving) throw std::runtime_error("cepheus-switch does not serve");
}

Fabric::~Fabric() {
  if (switch_ && switch_->is_running()) {
    ::kill(switch_->pid(), SIGTERM);
    EXPECT_EQ(switch_->wait(kToEnd), 0) << "the switch did not end well";
  }
  switch_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

json Fabric::send_request(const json& request) const {
  const auto answer = live::send_request(socket_, request);
  if (!answer) {
    ADD_FAILURE() << answer.error().text;
    return json::object();
  }
  return *answer;
}

std::uint64_t Fabric::payload_from(int host) const {
  return status()
      .at("switches")
      .at(0)
      .at("ports")
      .at(static_cast<std::size_t>(host))
      .at("rx_payload_bytes");
}

std::uint64_t Fabric::lost() const {
  std::uint64_t sum = 0;
  const json all = status();
  for (const json& one : all.at("switches")) {
    for (const json& port : one.at("ports")) {
      for (const char* way : {"in", "out"}) {
        sum += port.at(way).at("dropped_loss").get<std::uint64_t>();
      }
    }
  }
  return sum;
}

std::vector<std::string> on_host(const std::string& fabric_socket, int index) {
  if (fabric_socket.empty()) return {};
  return {"LD_PRELOAD=" CEPHEUS_ROCE,
          // For builds with sanitizers: the NIC is preloaded, so that their runtime can't come
          // first.
          "ASAN_OPTIONS=verify_asan_link_order=0", "CEPHEUS_FABRIC=" + fabric_socket,
          "CEPHEUS_HOST=#" + std::to_string(index)};
}

Member::Member(const std::string& fabric_socket, int index)
    : Member(fabric_socket, index, socket_pair()) {}

Member::Member(const std::string& fabric_socket, int index, std::pair<int, int> pair)
    : fd_(pair.first), process_({MCAST_MEMBER}, pair.second, on_host(fabric_socket, index)) {
  close(pair.second);
}

Member::~Member() {
  if (fd_ >= 0) close(fd_);
  if (!process_.is_running()) return;
  EXPECT_EQ(process_.wait(kToEnd), 0) << "a member did not end well";
}

void Member::send(const json& command) {
  const std::string text = command.dump();
  if (::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) < 0) {
    ADD_FAILURE() << "a member is gone; command was " << text;
  }
}

bool Member::has_answered() const {
  pollfd fd{fd_, POLLIN, 0};
  return poll(&fd, 1, 0) == 1;
}

json Member::receive() {
  pollfd fd{fd_, POLLIN, 0};
  std::vector<char> buffer(1 << 16);
  const ssize_t n = poll(&fd, 1, kAnswerMs) == 1 ? recv(fd_, buffer.data(), buffer.size(), 0) : -1;
  if (n <= 0) {
    ADD_FAILURE() << "a member " << (n == 0 ? "died" : "did not answer");
    return json::object();
  }
  return json::parse(buffer.data(), buffer.data() + n);
}

}  // namespace cepheus::mcast::e2e
