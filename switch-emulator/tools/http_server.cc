// cpp-httplib with three parts of our own: a bounded queue, a stream with time limits for whole
// requests, a socket that no process shares. Silent connections wait in the kernel
// (TCP_DEFER_ACCEPT), up to kSilentConnections.
//
// Bounds are HttpLimits: workers, waiting connections, requests of a connection, bytes and time of
// a request. The process has nice value kNiceness. SIGINT and SIGTERM are waited for with
// sigwait(3), so no handler runs.
#include "switch-emulator/tools/http_server.h"

#include <httplib.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "switch-emulator/tools/endings.h"

namespace cepheus::tools {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kSlowestRead = 1 << 20;  // bytes a second
// Between two checks whether the server ends.
constexpr std::chrono::milliseconds kBetweenEndChecks{50};
// Silent connections wait in the kernel, up to this number and time.
constexpr int kSilentConnections = 512;
constexpr int kSilentSeconds = 60;
// A page may wait; ranks on the same machine should not wait for it.
constexpr int kNiceness = 10;

// Accepted connections that wait, a few; when it is full, more wait in the kernel's own short
// queue.
class BoundedQueue : public httplib::TaskQueue {
 public:
  explicit BoundedQueue(const HttpLimits& limits) : waiting_(limits.waiting) {
    for (std::size_t i = 0; i < limits.workers; ++i) workers_.emplace_back([this] { work(); });
  }
  // In some versions of the library it returns nothing, in others whether the queue had room.
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));
  Enqueued enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    has_space_.wait(lock, [this] { return tasks_.size() < waiting_ || ended_; });
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
    has_space_.notify_all();
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
      has_space_.notify_one();
      task();
    }
  }

  const std::size_t waiting_;
  std::mutex mutex_;
  std::condition_variable has_task_, has_space_;
  std::deque<std::function<void()>> tasks_;
  bool ended_ = false;
  std::vector<std::thread> workers_;
};

// The library's own stream restarts the time limit with every read: a peer that sends a byte now
// and then would keep a worker for ever. Its interface differs between versions; this class has the
// functions of all of them.
class TimedStream final : public httplib::Stream {
 public:
  TimedStream(int socket, const HttpLimits& limits) : socket_(socket), limits_(limits) {}

  // False: no data in time, or the peer has closed.
  bool await_request(const std::atomic<socket_t>& listening) {
    const auto until = steady_clock::now() + limits_.time_limit;
    while (taken_ == have_ && !is_ready(POLLIN, steady_clock::now() + kBetweenEndChecks)) {
      if (steady_clock::now() >= until || listening == INVALID_SOCKET) return false;
    }
    read_until_ = steady_clock::now() + limits_.time_limit;
    may_read_ = limits_.request_bytes;
    return taken_ < have_ || fill();
  }
  bool is_readable() const { return taken_ < have_ || is_ready(POLLIN, read_until_); }
  bool wait_readable() const { return is_readable(); }
  bool is_writable() const { return is_ready(POLLOUT, steady_clock::now() + limits_.time_limit); }
  bool wait_writable() const { return is_writable(); }
  // The library limits a body with a length, but not one in chunks.
  ssize_t read(char* to, std::size_t size) {
    if (may_read_ == 0) return -1;
    if (taken_ == have_ && !(is_ready(POLLIN, read_until_) && fill())) return -1;
    const std::size_t count = std::min({size, have_ - taken_, may_read_});
    may_read_ -= count;
    std::copy_n(buffer_.data() + taken_, count, to);
    taken_ += count;
    return static_cast<ssize_t>(count);
  }
  // All of it, or -1.
  ssize_t write(const char* bytes, std::size_t size) {
    const auto until =
        steady_clock::now() + limits_.time_limit + std::chrono::seconds(size / kSlowestRead);
    for (std::size_t done = 0; done < size;) {
      if (!is_ready(POLLOUT, until)) return -1;
      const ssize_t sent = ::send(socket_, bytes + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno != EINTR && errno != EAGAIN) return -1;
      if (sent > 0) done += static_cast<std::size_t>(sent);
    }
    return static_cast<ssize_t>(size);
  }
  using httplib::Stream::write;
  void get_remote_ip_and_port(std::string&, int&) const {}  // not used
  void get_local_ip_and_port(std::string&, int&) const {}
  socket_t socket() const { return socket_; }
  time_t duration() const { return 0; }

 private:
  bool is_ready(short events, steady_clock::time_point until) const {
    pollfd watched{socket_, events, 0};
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
      const int ready = ::poll(&watched, 1, static_cast<int>(std::max<long>(left.count(), 0)));
      if (ready >= 0 || errno != EINTR) return ready > 0 && steady_clock::now() < until;
    }
  }
  bool fill() {
    const ssize_t came = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    taken_ = 0;
    have_ = came > 0 ? static_cast<std::size_t>(came) : 0;
    return came > 0;
  }

  const int socket_;
  const HttpLimits& limits_;
  steady_clock::time_point read_until_;
  std::size_t may_read_ = 0;  // bytes left for this request
  std::array<char, 4096> buffer_{};
  std::size_t taken_ = 0, have_ = 0;  // of buffer_
};

class TimedServer final : public httplib::Server {
 public:
  explicit TimedServer(const HttpLimits& limits) : limits_(limits) {}

 private:
  bool process_and_close_socket(socket_t socket) override {
    TimedStream stream(socket, limits_);
    bool is_good = true, is_closed = false;
    for (std::size_t left = limits_.requests_per_connection; left > 0 && is_good && !is_closed;
         --left) {
      if (!stream.await_request(svr_sock_)) break;
      is_good = answer(*this, stream, left == 1, is_closed);
    }
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return is_good;
  }
  // Later versions of the library also take the addresses of both ends.
  template <typename Self>
  static bool answer(Self& self, TimedStream& stream, bool is_last, bool& is_closed) {
    if constexpr (requires { self.process_request(stream, is_last, is_closed, nullptr); }) {
      return self.process_request(stream, is_last, is_closed, nullptr);
    } else {
      return self.process_request(stream, "", 0, "", 0, is_last, is_closed, nullptr);
    }
  }

  const HttpLimits& limits_;
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
  return wire::invalid("'" + text +
                       "' is not an address to listen at; write 127.0.0.1:9464 or [::1]:9464");
}

wire::Result<void> serve_http(const HttpAddress& address, const HttpLimits& limits,
                              const std::function<void(httplib::Server&)>& set_up,
                              const std::function<void(const std::string&)>& on_address,
                              const std::function<void()>& ending) {
  const sigset_t endings = block_endings();
  ::setpriority(PRIO_PROCESS, 0, kNiceness);
  TimedServer server(limits);
  server.new_task_queue = [&limits] { return new BoundedQueue(limits); };
  server.set_tcp_nodelay(true);  // an answer is two segments: the second would wait for an ACK
  // Both appear in answers.
  server.set_keep_alive_timeout(std::chrono::ceil<std::chrono::seconds>(limits.time_limit).count());
  server.set_keep_alive_max_count(limits.requests_per_connection);
  server.set_payload_max_length(limits.request_bytes);
  set_up(server);
  // The library's own socket would let a second process share the address, and get half of the
  // readers.
  // Silent connections stay in the kernel: the library would check them every 10 ms.
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
    return wire::unavailable("can't listen at " + host + ":" + std::to_string(address.port) +
                             "; is another process there, and is the address this machine's?");
  }
  ::listen(listening, kSilentConnections);  // the library's five would soon be used up
  std::thread listener([&] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();  // an earlier stop() would have no effect
  on_address("http://" + host + ":" + std::to_string(port));
  int signal = 0;
  sigwait(&endings, &signal);
  ending();
  server.stop();
  listener.join();
  return {};
}

}  // namespace cepheus::tools
