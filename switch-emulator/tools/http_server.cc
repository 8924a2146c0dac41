#include "switch-emulator/tools/http_server.h"

#include <httplib.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <charconv>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace cepheus::tools {
namespace {

constexpr time_t kPatienceSeconds = 2;
// Connections that have not said anything yet wait in the kernel, so many and so long.
constexpr int kSilentConnections = 512;
constexpr int kSilentSeconds = 60;
// A page may wait; ranks on the same machine should not wait for it.
constexpr int kNiceness = 10;

// Connections that wait, few; who comes while it is full waits in the kernel's own short queue.
class BoundedQueue : public httplib::TaskQueue {
 public:
  explicit BoundedQueue(const HttpLimits& limits) : waiting_(limits.waiting) {
    for (std::size_t i = 0; i < limits.workers; ++i) workers_.emplace_back([this] { work(); });
  }
  // Void in some versions of the library, whether there was room in others.
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));
  Enqueued enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    has_room_.wait(lock, [this] { return tasks_.size() < waiting_ || ended_; });
    tasks_.push_back(std::move(task));
    has_task_.notify_one();
    return Enqueued(true);
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    has_task_.notify_all();
    has_room_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

 private:
  void work() {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        has_task_.wait(lock, [this] { return !tasks_.empty() || ended_; });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      has_room_.notify_one();
      task();
    }
  }

  const std::size_t waiting_;
  std::mutex mutex_;
  std::condition_variable has_task_, has_room_;
  std::deque<std::function<void()>> tasks_;
  bool ended_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

bool HttpAddress::is_loopback() const {
  return host == "::1" || host == "localhost" || host.starts_with("127.");
}

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

wire::Result<void> serve_http(const HttpAddress& address, const HttpLimits& limits,
                              const std::function<void(httplib::Server&)>& set_up,
                              const std::function<void(const std::string&)>& says,
                              const std::function<void()>& ending) {
  sigset_t endings;
  sigemptyset(&endings);
  sigaddset(&endings, SIGINT);
  sigaddset(&endings, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &endings, nullptr);  // in all threads; one waits for them
  ::setpriority(PRIO_PROCESS, 0, kNiceness);
  httplib::Server server;
  server.new_task_queue = [&limits] { return new BoundedQueue(limits); };
  server.set_tcp_nodelay(true);  // an answer is two segments: the second one would wait for an ACK
  server.set_read_timeout(kPatienceSeconds);
  server.set_write_timeout(kPatienceSeconds);
  server.set_keep_alive_timeout(kPatienceSeconds);
  server.set_keep_alive_max_count(limits.requests_per_connection);
  server.set_payload_max_length(limits.request_bytes);
  set_up(server);
  // The library's own would let a second process share the address, and each get half of the readers.
  // What says nothing stays with the kernel: the library would look at it every 10 ms.
  int listening = -1;
  server.set_socket_options([&listening](auto socket) {
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(socket, IPPROTO_TCP, TCP_DEFER_ACCEPT, &kSilentSeconds, sizeof kSilentSeconds);
    listening = socket;
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
  ::listen(listening, kSilentConnections);  // the library's five would soon be taken by them
  std::thread listener([&] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();  // stop() would not be heard before
  says("http://" + host + ":" + std::to_string(port));
  int signal = 0;
  sigwait(&endings, &signal);
  ending();
  server.stop();
  listener.join();
  return {};
}

}  // namespace cepheus::tools
