// receive() buffers one whole frame and less than kReadAtOnce bytes of the next; the kernel holds
// the rest, so the peer is slowed down. next() checks a frame's length before its content is there.
// flush() keeps what the other end does not take.
//
// Nothing here waits, except Endpoint::parse(): it resolves a name by getaddrinfo(3) and keeps the
// first address.
#include "replica/control/frame_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "wire/byte_order.h"

namespace cepheus::replica {
namespace {

constexpr std::size_t kReadAtOnce = 64 << 10;

void disable_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

const sockaddr* address_of(const Endpoint& e) {
  return reinterpret_cast<const sockaddr*>(e.address.data());
}

bool is_loopback(const Endpoint& e) {
  constexpr std::uint8_t kLoopbackNet = 127;
  if (address_of(e)->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, e.address.data(), sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == kLoopbackNet;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, e.address.data(), sizeof v6);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) != 0;
}

// Also short ones like 127.1.
bool is_numeric(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

wire::Error failed(const std::string& what, int error) {
  return {wire::ErrorCode::kUnavailable, what + ": " + std::strerror(error)};
}

}  // namespace

FrameSocket::FrameSocket(wire::UniqueFd fd, std::size_t most) : fd_(std::move(fd)), most_(most) {}

short FrameSocket::events() const {
  return static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT);
}

bool FrameSocket::receive() {
  in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(taken_));
  taken_ = 0;
  // One whole frame and the beginning of the next one: the rest waits in the kernel.
  while (in_.size() < kFrameHeader + most_) {
    const std::size_t before = in_.size();
    in_.resize(before + kReadAtOnce);
    const ssize_t n = recv(fd_.get(), in_.data() + before, kReadAtOnce, MSG_DONTWAIT);
    in_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0) return false;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (static_cast<std::size_t>(n) < kReadAtOnce) return true;
  }
  return true;
}

std::optional<FrameSocket::Frame> FrameSocket::next(bool& ok) {
  ok = true;
  const auto left = std::span<const std::uint8_t>(in_).subspan(taken_);
  if (left.size() < kFrameHeader) return std::nullopt;
  const std::size_t length = wire::load_be32(left.data());
  ok = length >= 1 && length <= most_;
  if (!ok || left.size() < kFrameHeader + length) return std::nullopt;
  taken_ += kFrameHeader + length;
  return Frame{static_cast<MessageType>(left[kFrameHeader]),
               left.subspan(kFrameHeader + 1, length - 1)};
}

bool FrameSocket::flush() {
  std::size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t n =
        send(fd_.get(), out_.data() + sent, out_.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    if (n < 0) break;
    sent += static_cast<std::size_t>(n);
  }
  out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(sent));
  return out_.size() <= kMostUnsent;
}

wire::Result<Endpoint> Endpoint::parse(const std::string& text) {
  const auto invalid = [&](const std::string& why) {
    return wire::invalid("'" + text + "' " + why);
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
    return invalid("is not host:port");
  }
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), text.c_str() + colon + 1, &hints, &found)) {
    return invalid(std::string("has no address: ") + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(found->ai_addr);
  const bool is_name = host != "localhost" && !is_numeric(host);
  return Endpoint{text, {bytes, bytes + found->ai_addrlen}, is_name};
}

wire::Result<wire::UniqueFd> dial(const Endpoint& to) {
  wire::UniqueFd fd(
      socket(address_of(to)->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return tl::unexpected(failed(to.name, errno));
  disable_delay(fd.get());
  const auto size = static_cast<socklen_t>(to.address.size());
  if (connect(fd.get(), address_of(to), size) != 0 && errno != EINPROGRESS) {
    return tl::unexpected(failed(to.name, errno));
  }
  return fd;
}

int outcome(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

wire::Result<wire::UniqueFd> listen_at(const Endpoint& at) {
  // Debian's /etc/hosts gives a host's own name 127.0.1.1.
  if (at.is_looked_up && is_loopback(at)) {
    return wire::invalid("no other host could connect to " + at.name +
                         ", because this host has a loopback address under that name, often by a "
                         "line of /etc/hosts: name an address, or remove that line");
  }
  wire::UniqueFd fd(
      socket(address_of(at)->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return tl::unexpected(failed(at.name, errno));
  // A restarted replica listens again at once.
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto size = static_cast<socklen_t>(at.address.size());
  if (bind(fd.get(), address_of(at), size) != 0 || listen(fd.get(), 64) != 0) {
    return tl::unexpected(failed("can't listen at " + at.name, errno));
  }
  return fd;
}

wire::UniqueFd accept_from(int listener) {
  wire::UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.is_open()) disable_delay(fd.get());
  return fd;
}

}  // namespace cepheus::replica
