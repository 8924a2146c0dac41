// For tests: a control socket that answers one line for one line, on one connection after the
// other.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "switch-emulator/live/status/control_protocol.h"

namespace cepheus::live {

class AnsweringFabric {
 public:
  // Null: it accepts no connection; the kernel completes a few.
  explicit AnsweringFabric(const nlohmann::json& answer) : answer_(answer.dump() + "\n") {
    char pattern[] = "/tmp/cepheus-answers-XXXXXX";
    directory_ = ::mkdtemp(pattern);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = control_path(socket());
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 8) != 0) {
      ADD_FAILURE() << "can't listen at " << path << ": " << std::strerror(errno);
    }
    if (!answer.is_null()) thread_ = std::thread([this] { serve(); });
  }
  ~AnsweringFabric() {
    ::shutdown(listener_, SHUT_RDWR);  // ends accept()
    if (thread_.joinable()) thread_.join();
    ::close(listener_);
    std::filesystem::remove_all(directory_);
  }

  std::string socket() const { return directory_ + "/fabric"; }
  nlohmann::json last_request() {
    const std::lock_guard lock(mutex_);
    return nlohmann::json::parse(request_, nullptr, false);
  }
  // Waits until this request has been answered twice more: the second time with the newest answer.
  bool answers_again(const nlohmann::json& request) {
    const unsigned before = times_answered(request);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (times_answered(request) < before + 2) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::yield();
    }
    return true;
  }
  void change_answer(const nlohmann::json& answer) { answer_with(answer.dump() + "\n"); }
  void answer_with(const std::string& text) {
    const std::lock_guard lock(mutex_);
    answer_ = text;
  }

 private:
  unsigned times_answered(const nlohmann::json& request) {
    const std::lock_guard lock(mutex_);
    return times_answered_[request.dump()];
  }
  void serve() {
    while (true) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      std::string line;
      char c;
      while (::recv(client, &c, 1, 0) == 1 && c != '\n') line += c;
      {
        const std::lock_guard lock(mutex_);
        request_ = line;
        ++times_answered_[nlohmann::json::parse(line, nullptr, false).dump()];
        line = answer_;
      }
      for (std::size_t sent = 0; sent < line.size();) {
        const ssize_t n = ::send(client, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
      }
      ::close(client);
    }
  }

  std::string directory_;
  int listener_ = -1;
  std::mutex mutex_;
  std::string answer_, request_;
  std::map<std::string, unsigned> times_answered_;  // by request
  std::thread thread_;
};

}  // namespace cepheus::live
