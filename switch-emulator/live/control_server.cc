#include "switch-emulator/live/control_server.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/printable.h"
#include "switch-emulator/ports/handshake.h"

namespace cepheus::live {
namespace {

constexpr std::size_t kMaxConnections = 32;
constexpr std::size_t kMaxRequest = 64 << 10;

std::string to_line(const nlohmann::json& json) { return json_text(json) + "\n"; }

}  // namespace

ControlServer::ControlServer(Poller& poller, const ListeningSocket& socket, const Access& access,
                             Answer answer)
    : poller_(poller), socket_(socket), access_(access), answer_(std::move(answer)) {}

ControlServer::~ControlServer() {
  for (const auto& [fd, connection] : connections_) poller_.forget(fd);
  poller_.forget(socket_.fd());
}

bool ControlServer::start() {
  return poller_.watch(socket_.fd(), Poller::kIn, [this](std::uint32_t) { accept_all(); });
}

bool ControlServer::has_unsent() const {
  for (const auto& [fd, connection] : connections_) {
    if (!connection.out.empty()) return true;
  }
  return false;
}

void ControlServer::accept_all() {
  for (fabric::UniqueFd socket = socket_.accept(); socket.is_open(); socket = socket_.accept()) {
    const int fd = socket.get();
    const auto peer = fabric::peer_credentials(fd);
    if (!peer || !access_.may_attach(peer->uid)) {
      ++refused_users_;
      continue;
    }
    if (connections_.size() == kMaxConnections) drop(connections_.begin()->first);
    if (!poller_.watch(fd, Poller::kIn, [this, fd](std::uint32_t) { serve(fd); })) continue;
    connections_[fd].socket = std::move(socket);
    connections_[fd].may_command = access_.may_command(peer->uid);
  }
}

void ControlServer::drop(int fd) {
  poller_.forget(fd);
  connections_.erase(fd);
}

void ControlServer::serve(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (!read_requests(connection)) return drop(fd);
  answer_lines(connection);
  if (!write_answers(connection)) return drop(fd);
  if (connection.ended && connection.out.empty()) return drop(fd);
  // Who does not read his answers is not asked for more requests.
  const std::uint32_t events = connection.out.empty() ? Poller::kIn : Poller::kOut;
  poller_.watch(fd, events, [this, fd](std::uint32_t) { serve(fd); });
}

bool ControlServer::read_requests(Connection& connection) {
  std::array<char, 4096> buffer;
  while (connection.out.empty() && connection.in.size() <= kMaxRequest) {
    const ssize_t length =
        recv(connection.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (length == 0) connection.ended = true;
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return length == 0 || errno == EAGAIN || errno == EWOULDBLOCK;
    connection.in.append(buffer.data(), static_cast<std::size_t>(length));
    if (connection.in.find('\n') != std::string::npos) return true;
  }
  return connection.in.size() <= kMaxRequest;
}

void ControlServer::answer_lines(Connection& connection) {
  for (std::size_t end = connection.in.find('\n'); end != std::string::npos;
       end = connection.in.find('\n')) {
    const auto request = nlohmann::json::parse(connection.in.substr(0, end), nullptr, false);
    connection.in.erase(0, end + 1);
    if (connection.may_command || request == nlohmann::json{{"ask", "status"}}) {
      connection.out += to_line(answer_(request));
    } else {
      connection.out +=
          to_line({{"ok", false}, {"error", "only the fabric's own user may do more than look"}});
    }
  }
}

bool ControlServer::write_answers(Connection& connection) {
  while (!connection.out.empty()) {
    const ssize_t length = send(connection.socket.get(), connection.out.data(),
                                connection.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    connection.out.erase(0, static_cast<std::size_t>(length));
  }
  return true;
}

}  // namespace cepheus::live
