// Messages are queued and sent as far as the daemon reads; beyond kMostUnsent bytes send() refuses.
// next() sends what is left, returns the next whole message, and reads kReadAtOnce bytes at a time.
// A refusal is an error with the daemon's reason. A lost connection is reported by next() only,
// after the messages that came before.
#include "controller/connections/client/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "wire/byte_order.h"

namespace cepheus::connections {
namespace {

constexpr std::size_t kReadAtOnce = 16 << 10;

tl::unexpected<wire::Error> gone(const std::string& why) {
  return wire::fail(wire::ErrorCode::kFailed,
                    "lost cepheus-cmd (" + why + "): open it again when it runs");
}

}  // namespace

std::string Client::default_socket() {
  const char* named = std::getenv("CEPHEUS_CMD_SOCKET");
  return named != nullptr && *named != '\0' ? named : "/run/cepheus-cmd/cmd.sock";
}

wire::Result<Client> Client::open(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof address.sun_path) {
    return wire::invalid("'" + socket + "' can't be a socket's path");
  }
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  wire::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open() ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return wire::unavailable("no cepheus-cmd answers at " + socket + " (" + std::strerror(errno) +
                             "): start it");
  }
  Client client(std::move(fd));
  if (auto sent = client.send({.type = MessageType::kProgram}); !sent) {
    return tl::unexpected(sent.error());
  }
  return client;
}

short Client::events() const {
  return static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT);
}

wire::Result<bool> Client::send(const Message& message) {
  if (out_.size() > kMostUnsent) {
    return wire::fail(wire::ErrorCode::kAgain,
                      "cepheus-cmd has not read earlier messages: take events first");
  }
  const auto frame = frame_of(message);
  out_.insert(out_.end(), frame.begin(), frame.end());
  // next() reports the daemon's reason for a refusal.
  if (auto flushed = flush(); !flushed && flushed.error().code != wire::ErrorCode::kFailed) {
    return flushed;
  }
  return true;
}

wire::Result<bool> Client::flush() {
  std::size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t n =
        ::send(fd_.get(), out_.data() + sent, out_.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
      out_.clear();
      return gone(std::strerror(errno));
    }
    if (n < 0) break;
    sent += static_cast<std::size_t>(n);
  }
  out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(sent));
  return true;
}

wire::Result<std::optional<Message>> Client::take() {
  const auto left = std::span<const std::uint8_t>(in_).subspan(taken_);
  if (left.size() < kFrameHeader) return std::nullopt;
  const std::size_t length = wire::load_be32(left.data());
  if (length > kMostEvent) return gone("its message is too long");
  if (left.size() < kFrameHeader + length) return std::nullopt;
  auto message = Message::parse(left.subspan(kFrameHeader, length));
  taken_ += kFrameHeader + length;
  if (!message) return gone("its message is malformed");
  if (message->type == MessageType::kRefusal) {
    return wire::fail(wire::ErrorCode::kRefused, message->text);
  }
  return message;
}

wire::Result<std::optional<Message>> Client::next() {
  static_cast<void>(flush());
  while (true) {
    auto message = take();
    if (!message || *message) return message;
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
    const std::size_t before = in_.size();
    in_.resize(before + kReadAtOnce);
    const ssize_t n = recv(fd_.get(), in_.data() + before, kReadAtOnce, MSG_DONTWAIT);
    const int error = errno;
    in_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0) return gone("it closed the connection");
    if (n > 0 || error == EINTR) continue;
    if (error != EAGAIN && error != EWOULDBLOCK) return gone(std::strerror(error));
    return std::nullopt;
  }
}

}  // namespace cepheus::connections
