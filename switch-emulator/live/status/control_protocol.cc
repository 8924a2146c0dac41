// The client's end: connect, send one line, receive one line. Connecting and sending are limited by
// SO_SNDTIMEO, receiving by a deadline kTimeLimit after the start. An answer has at most kMaxAnswer
// bytes. Each failure is one line that names the socket and what to do.
#include "switch-emulator/live/status/control_protocol.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/printable.h"
#include "wire/unique_fd.h"

namespace cepheus::live {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using wire::ErrorCode;
using wire::fail;

constexpr milliseconds kTimeLimit{5000};
constexpr std::size_t kMaxAnswer = 64 << 20;

class Connection {
 public:
  explicit Connection(std::string path)
      : path_(std::move(path)), deadline_(steady_clock::now() + kTimeLimit) {}
  wire::Result<void> open() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) {
      return wire::invalid("socket path " + path_ + " is longer than " +
                           std::to_string(sizeof address.sun_path - 1) +
                           " bytes; choose a shorter one");
    }
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    fd_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd_.is_open()) {
      return fail(ErrorCode::kFailed, std::string("can't make a socket: ") + std::strerror(errno));
    }
    // Also limits connect() and send(), which both wait for a fabric that does not read.
    timeval time_limit{};
    time_limit.tv_sec = kTimeLimit.count() / 1000;
    time_limit.tv_usec = kTimeLimit.count() % 1000 * 1000;
    if (::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &time_limit, sizeof time_limit) != 0) {
      return wire::call_failed("can't limit the time to connect to " + path_);
    }
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return {};
    if (errno == EAGAIN) return no_answer();
    return wire::unavailable("no fabric at " + path_ + ": " + std::strerror(errno) +
                             "; start cepheus-switch, or name the fabric by --fabric PATH or "
                             "CEPHEUS_FABRIC");
  }

  wire::Result<void> send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (n > 0) {
        text.remove_prefix(static_cast<std::size_t>(n));
      } else if (n < 0 && errno == EAGAIN) {
        return no_answer();
      } else if (n >= 0 || errno != EINTR) {
        return wire::unavailable("the fabric at " + path_ + " closed the connection");
      }
    }
    return {};
  }

  wire::Result<std::string> receive_line() {
    std::string line;
    std::array<char, 16384> chunk;
    while (line.size() < kMaxAnswer) {
      const auto left =
          std::chrono::duration_cast<milliseconds>(deadline_ - steady_clock::now()).count();
      pollfd wait{fd_.get(), POLLIN, 0};
      const int ready = left <= 0 ? 0 : ::poll(&wait, 1, static_cast<int>(left));
      if (ready == 0) return no_answer();
      if (ready < 0 && errno != EINTR) {
        return wire::call_failed("can't wait for the fabric at " + path_);
      }
      const ssize_t n = ::recv(fd_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) return wire::unavailable("the fabric at " + path_ + " closed the connection");
      const std::string_view part(chunk.data(), static_cast<std::size_t>(n));
      line += part.substr(0, part.find('\n'));
      if (part.find('\n') != std::string_view::npos) return line;
    }
    return wire::unavailable("the fabric at " + path_ +
                             "'s answer is longer than 64 MiB; is it a cepheus-switch?");
  }

 private:
  tl::unexpected<wire::Error> no_answer() const {
    return fail(
        ErrorCode::kTimedOut,
        "the fabric at " + path_ + " did not answer within 5 s; is it stopped or overloaded?");
  }

  const std::string path_;
  const steady_clock::time_point deadline_;
  wire::UniqueFd fd_;
};

}  // namespace

nlohmann::json refusal(std::string_view why) { return {{"ok", false}, {"error", why}}; }

std::string control_path(const std::string& fabric_socket) { return fabric_socket + ".ctl"; }

wire::Result<nlohmann::json> send_request(const std::string& fabric_socket,
                                          const nlohmann::json& request) {
  Connection connection(control_path(fabric_socket));
  if (auto opened = connection.open(); !opened) return tl::unexpected(opened.error());
  if (auto sent = connection.send(json_text(request) + "\n"); !sent)
    return tl::unexpected(sent.error());
  const auto line = connection.receive_line();
  if (!line) return tl::unexpected(line.error());
  nlohmann::json answer = nlohmann::json::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("ok") || !answer["ok"].is_boolean()) {
    return wire::unavailable("the program at " + control_path(fabric_socket) +
                             " is not a fabric of this version");
  }
  if (!answer["ok"].get<bool>()) {
    const auto reason = answer.find("error");
    return fail(ErrorCode::kRefused, reason != answer.end() && reason->is_string()
                                         ? reason->get<std::string>()
                                         : "the fabric refused without a reason");
  }
  return answer;
}

}  // namespace cepheus::live
