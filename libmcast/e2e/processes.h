// The processes of an end-to-end test: a fabric (cepheus-switch) and members (mcast_member) on its
// hosts. All end with the test in every case, and every wait has a bound.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cepheus::mcast::e2e {

using nlohmann::json;
using namespace std::chrono_literals;

class Process {
 public:
  // `keep_fd` becomes descriptor 3 of the new process; `environment` is added to ours.
  Process(const std::vector<std::string>& arguments, int keep_fd,
          const std::vector<std::string>& environment);
  ~Process();
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&&) = delete;

  pid_t pid() const { return pid_; }
  bool is_running() const { return pid_ >= 0; }
  void kill();  // at once, and waits for it
  // Its exit code, or -1 if it does not end in time or not by itself.
  int wait(std::chrono::seconds limit);

 private:
  pid_t pid_;
};

// Owns a directory in which its socket lives.
class Fabric {
 public:
  // `arguments` choose the topology: {"--hosts", "4"}.
  explicit Fabric(const std::vector<std::string>& arguments);
  ~Fabric();

  static Fabric of(int hosts) { return Fabric({"--hosts", std::to_string(hosts)}); }
  static Fabric of_text(const std::string& topology) { return Fabric({}, topology); }
  // One switch, `hosts` hosts, and loss on every link in both directions. `more`: lines in front of
  // the topology.
  static Fabric lossy(int hosts, double loss, const std::string& more = "");
  // Two switches with these settings, and two hosts at each.
  static Fabric of_two_switches(const std::string& settings, const std::string& more = "");

  const std::string& socket() const { return socket_; }
  json send_request(const json& request) const;
  json status() const { return send_request({{"ask", "status"}}).at("status"); }
  json groups() const { return status().at("switches").at(0).at("groups"); }
  // RoCE payload bytes that host `i` sent: first transmissions and repeats.
  std::uint64_t payload_from(int host) const;
  std::uint64_t lost() const;  // frames that links lost by chance
  void kill() { switch_->kill(); }

 private:
  Fabric(const std::vector<std::string>& arguments, const std::string& topology);

  std::string directory_, socket_;
  std::unique_ptr<Process> switch_;
};

// The environment that makes a process one of host `index` of the fabric.
std::vector<std::string> on_host(const std::string& fabric_socket, int index);

// The process ends by itself after the test, so that a crash or a sanitizer's report fails the
// test.
class Member {
 public:
  // On host `index` of the fabric at `fabric_socket`; without a socket no NIC is preloaded.
  Member(const std::string& fabric_socket, int index);
  ~Member();
  Member(Member&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), process_(std::move(other.process_)) {}

  void send(const json& command);
  json receive();  // {} and a test failure if it does not answer in time
  bool has_answered() const;
  json send_request(const json& command) {
    send(command);
    return receive();
  }
  pid_t pid() const { return process_.pid(); }
  void kill() { process_.kill(); }

 private:
  Member(const std::string& fabric_socket, int index, std::pair<int, int> pair);

  int fd_;
  Process process_;
};

}  // namespace cepheus::mcast::e2e
