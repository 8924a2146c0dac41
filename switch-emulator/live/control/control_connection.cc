// read() stops at kMaxRequests bytes, and a peer whose line is longer than that is useless. write()
// sends at most kSendAtOnce bytes before the other connections' turn. Only progress counts as
// activity, so a peer that reads nothing runs into kTimeLimit.
#include "switch-emulator/live/control/control_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace cepheus::live {
namespace {

// Bytes from one connection before the others' turn.
constexpr std::size_t kSendAtOnce = 1 << 20;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

bool ControlConnection::read(wire::Instant now) {
  in_.erase(0, taken_);
  taken_ = 0;
  std::array<char, 4096> buffer;
  while (in_.size() < kMaxRequests) {
    const ssize_t length = recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return would_block(errno);
    if (length == 0) {
      ended_ = true;
      return true;
    }
    in_.append(buffer.data(), static_cast<std::size_t>(length));
    active_ = now;
  }
  return !request().empty() || has_unsent();
}

std::string_view ControlConnection::request() const {
  const std::size_t end = in_.find('\n', taken_);
  if (end == std::string::npos) return {};
  return std::string_view(in_).substr(taken_, end + 1 - taken_);
}

bool ControlConnection::write(wire::Instant now) {
  for (std::size_t budget = kSendAtOnce; !out_.empty() && budget > 0;) {
    const std::string& text = *out_.front();
    const ssize_t length = send(fd(), text.data() + sent_, std::min(text.size() - sent_, budget),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return would_block(errno);
    active_ = now;
    budget -= static_cast<std::size_t>(length);
    sent_ += static_cast<std::size_t>(length);
    if (sent_ < text.size()) continue;
    sent_ = 0;
    out_.pop_front();
  }
  return true;
}

}  // namespace cepheus::live
