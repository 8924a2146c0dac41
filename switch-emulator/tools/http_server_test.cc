#include "switch-emulator/tools/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <future>
#include <thread>

#include "wire/unique_fd.h"

namespace cepheus::tools {
namespace {

using namespace std::chrono_literals;

constexpr HttpLimits kLimits{2, 8, 16, 16 << 10, 500ms};
constexpr HttpLimits kPatient{2, 8, 16, 16 << 10, 5s};
constexpr auto kBound = 20s;  // far longer than any of these waits

// A server on its own thread, at a free port of this machine.
class Served {
 public:
  explicit Served(std::function<void(httplib::Server&)> set_up,
                  const HttpLimits& limits = kLimits) {
    auto served = url_.get_future();
    thread_ = std::thread([this, set_up = std::move(set_up), limits] {
      const auto done = serve_http({"127.0.0.1", 0}, limits, set_up,
                                   [&](const std::string& at) { url_.set_value(at); });
      EXPECT_TRUE(done) << done.error().text;
    });
    const std::string at = served.get();
    port_ = static_cast<std::uint16_t>(std::stoi(at.substr(at.rfind(':') + 1)));
  }
  ~Served() {
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }
  wire::UniqueFd connect() const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    wire::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

 private:
  std::promise<std::string> url_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

void send_all(int fd, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;  // it has disconnected, as it may
    sent += static_cast<std::size_t>(n);
  }
}

// All bytes until the server disconnects.
std::string receive_all(int fd) {
  std::string all;
  char buffer[4096];
  for (ssize_t n; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
    all.append(buffer, static_cast<std::size_t>(n));
  }
  return all;
}

TEST(HttpServer, DisconnectsAReaderThatDoesNotRead) {
  std::promise<void> given_up;
  const Served server([&](httplib::Server& http) {
    http.Get("/endless", [&](const httplib::Request&, httplib::Response& response) {
      const auto more = [part = std::string(64 << 10, 'x')](std::size_t, httplib::DataSink& sink) {
        return sink.write(part.data(), part.size());
      };
      response.set_chunked_content_provider("text/plain", more,
                                            [&](bool) { given_up.set_value(); });
    });
  });
  const wire::UniqueFd reader = server.connect();
  send_all(reader.get(), "GET /endless HTTP/1.1\r\n\r\n");
  EXPECT_EQ(given_up.get_future().wait_for(kBound), std::future_status::ready);
}

// The library accepts a body in chunks of any length.
TEST(HttpServer, RefusesABodyWithoutEnd) {
  std::atomic<int> taken{0};
  const Served server(
      [&](httplib::Server& http) {
        http.Post("/", [&](const httplib::Request&, httplib::Response&) { ++taken; });
      },
      kPatient);
  const wire::UniqueFd sender = server.connect();
  const std::string chunk = "8000\r\n" + std::string(0x8000, 'x') + "\r\n";
  send_all(sender.get(),
           "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + "0\r\n\r\n");
  receive_all(sender.get());
  EXPECT_EQ(taken, 0);
}

TEST(HttpServer, BoundsEachRequestOfAConnectionAlone) {
  const Served server(
      [](httplib::Server& http) {
        http.Get("/", [](const httplib::Request&, httplib::Response& response) {
          response.set_content("hello", "text/plain");
        });
      },
      kPatient);
  const wire::UniqueFd reader = server.connect();
  const std::string large = ": " + std::string(5000, 'x') + "\r\n";
  const std::string request = "GET / HTTP/1.1\r\nA" + large + "B" + large;
  send_all(reader.get(),
           request + "\r\n" + request + "\r\n" + request + "Connection: close\r\n\r\n");
  const std::string all = receive_all(reader.get());
  std::size_t answers = 0;
  for (std::size_t at = 0; (at = all.find("hello", at)) != std::string::npos; ++at) ++answers;
  EXPECT_EQ(answers, 3u);
}

}  // namespace
}  // namespace cepheus::tools
