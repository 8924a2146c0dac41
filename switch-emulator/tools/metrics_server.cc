#include "switch-emulator/tools/metrics_server.h"

#include <httplib.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

namespace cepheus::tools {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kWorkers = 2, kWaiting = 8;
constexpr std::size_t kRequestsPerConnection = 16, kMaxRequestBytes = 4096;
constexpr time_t kPatienceSeconds = 2;
constexpr std::chrono::seconds kFresh{1};
constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// Connections that wait, few; who comes while it is full waits in the kernel's own short queue.
class BoundedQueue : public httplib::TaskQueue {
 public:
  BoundedQueue() {
    for (std::size_t i = 0; i < kWorkers; ++i) workers_.emplace_back([this] { work(); });
  }
  // Void in some versions of the library, whether there was room in others.
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));
  Enqueued enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.size() < kWaiting || ended_; });
    tasks_.push_back(std::move(task));
    changed_.notify_all();
    return Enqueued(true);
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

 private:
  void work() {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !tasks_.empty() || ended_; });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      changed_.notify_all();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ended_ = false;
  std::vector<std::thread> workers_;
};

// One page for all who ask within a second: a fabric's desk is not asked by every reader.
class SharedPage {
 public:
  explicit SharedPage(std::function<std::string()> make) : make_(std::move(make)) {}
  std::string get() {
    const std::lock_guard lock(mutex_);
    const auto now = steady_clock::now();
    if (text_.empty() || now - made_ >= kFresh) {
      text_ = make_();
      made_ = steady_clock::now();
    }
    return text_;
  }

 private:
  std::mutex mutex_;
  std::function<std::string()> make_;
  std::string text_;
  steady_clock::time_point made_;
};

}  // namespace

wire::Result<HttpAddress> parse_http_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  HttpAddress address;
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + colon + 1, end, address.port);
    const bool is_v6 = address.host.find(':') != std::string::npos;
    const bool has_brackets =
        address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
    if (read.ec == std::errc() && read.ptr == end && is_v6 == has_brackets) {
      if (has_brackets) address.host = address.host.substr(1, address.host.size() - 2);
      if (address.host.empty()) address.host = "0.0.0.0";
      return address;
    }
  }
  return wire::fail(
      wire::ErrorCode::kInvalid,
      "'" + text + "' is no address to listen at; write 127.0.0.1:9464 or [::1]:9464");
}

wire::Result<void> serve_metrics(const HttpAddress& address, std::function<std::string()> page) {
  sigset_t endings;
  sigemptyset(&endings);
  sigaddset(&endings, SIGINT);
  sigaddset(&endings, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &endings, nullptr);  // in all threads; one waits for them
  SharedPage shared(std::move(page));
  httplib::Server server;
  server.new_task_queue = [] { return new BoundedQueue; };
  server.set_read_timeout(kPatienceSeconds);
  server.set_write_timeout(kPatienceSeconds);
  server.set_keep_alive_timeout(kPatienceSeconds);
  server.set_keep_alive_max_count(kRequestsPerConnection);
  server.set_payload_max_length(kMaxRequestBytes);
  server.Get("/metrics", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(shared.get(), kContentType);
  });
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("cepheusctl metrics: GET /metrics\n", "text/plain");
  });
  // The library's own would let a second process share the address, and each get half of the readers.
  server.set_socket_options([](auto socket) {
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  });
  const int port = address.port == 0 ? server.bind_to_any_port(address.host.c_str())
                   : server.bind_to_port(address.host.c_str(), address.port) ? address.port
                                                                             : -1;
  const bool is_v6 = address.host.find(':') != std::string::npos;
  const std::string host = is_v6 ? "[" + address.host + "]" : address.host;
  if (port < 0) {
    return wire::fail(wire::ErrorCode::kUnavailable,
                      "can't listen at " + host + ":" + std::to_string(address.port) +
                          "; is another process there, and is the address this machine's?");
  }
  std::thread listener([&] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();  // stop() would not be heard before
  std::cout << "metrics at http://" << host << ":" << port << "/metrics" << std::endl;
  int signal = 0;
  sigwait(&endings, &signal);
  server.stop();
  listener.join();
  return {};
}

}  // namespace cepheus::tools
