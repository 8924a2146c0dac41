// serve() is one pass: drop peers without permission or progress, answer each connection's first
// request and its repeats, drop slow readers. Permissions are checked at each pass, because a
// reload may revoke them.
//
// A new connection beyond a limit closes the one that was idle longest: of the same user, else of
// the user with most. An answer is shared by equal requests of one pass only.
#include "switch-emulator/live/control/control_server.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/status/printable.h"
#include "switch-emulator/ports/handshake.h"
#include "wire/clock.h"

namespace cepheus::live {
namespace {

using nlohmann::json;
using wire::Instant;

std::string to_line(const json& answer) { return json_text(answer) + "\n"; }

std::span<const std::uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

ControlServer::ControlServer(Poller& poller, ListeningSocket& socket, const Access& access,
                             Answer answer)
    : poller_(poller), socket_(socket), access_(access), answer_(std::move(answer)) {}

void ControlServer::close() {
  for (const auto& [fd, connection] : connections_) poller_.forget(fd);
  poller_.forget(socket_.fd());
  connections_.clear();
  socket_.close();
}

bool ControlServer::start() {
  return poller_.watch(socket_.fd(), Poller::kIn, [this](std::uint32_t) { accept_some(); });
}

bool ControlServer::has_unsent() const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const auto& each) { return each.second.has_unsent(); });
}

Instant ControlServer::deadline() const {
  Instant first = wire::kNever;
  for (const auto& [fd, connection] : connections_) {
    const bool requests = !connection.has_unsent() && !connection.request().empty();
    first = std::min(first, requests ? Instant{} : connection.deadline());
  }
  return first;
}

void ControlServer::accept_some() {
  const std::string full = to_line(refusal(kOutOfDescriptors));
  for (int n = 0; n < ListeningSocket::kAcceptsAtOnce; ++n) {
    fabric::UniqueFd socket = socket_.accept(as_bytes(full));
    if (!socket.is_open()) return;
    const auto peer = fabric::peer_credentials(socket.get());
    if (!peer || !access_.may_attach(peer->uid)) {
      ++refused_users_;
      continue;
    }
    limit_connections(peer->uid);
    const int fd = socket.get();
    const auto [at, is_new] = connections_.emplace(
        fd, ControlConnection(std::move(socket), peer->uid, wire::monotonic_now()));
    watch(at->second);
  }
}

// A user's new connections replace the user's old ones. If there are too many of all users, those
// of the user with most are closed.
void ControlServer::limit_connections(uid_t user) {
  std::map<uid_t, std::size_t> by_user;
  for (const auto& [fd, connection] : connections_) ++by_user[connection.user()];
  const bool is_one_users = by_user[user] >= kMaxOfOneUser;
  if (!is_one_users && connections_.size() < kMaxConnections) return;
  using Count = std::pair<const uid_t, std::size_t>;
  const uid_t most = std::ranges::max_element(by_user, {}, &Count::second)->first;
  const uid_t owner = is_one_users ? user : most;
  drop_stalest([owner](const ControlConnection& one) { return one.user() == owner; });
}

// Of those for which `which(connection)` is true.
void ControlServer::drop_stalest(const std::function<bool(const ControlConnection&)>& which) {
  const ControlConnection* stalest = nullptr;
  for (const auto& [fd, connection] : connections_) {
    if (!which(connection)) continue;
    if (stalest == nullptr || connection.last_active() < stalest->last_active()) {
      stalest = &connection;
    }
  }
  if (stalest != nullptr) drop(stalest->fd());
}

void ControlServer::drop(int fd) {
  poller_.forget(fd);
  connections_.erase(fd);
}

void ControlServer::watch(ControlConnection& connection) {
  const int fd = connection.fd();
  const std::uint32_t events = connection.wants_requests() ? Poller::kIn
                               : connection.has_unsent()   ? Poller::kOut
                                                           : Poller::kHangup;
  if (!poller_.watch(fd, events, [this, fd](std::uint32_t) { on_readable(fd); })) drop(fd);
}

void ControlServer::on_readable(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  ControlConnection& connection = found->second;
  const Instant now = wire::monotonic_now();
  const bool is_of_use = connection.has_unsent() ? connection.write(now) : connection.read(now);
  if (!is_of_use || connection.is_done()) return drop(fd);
  watch(connection);
}

void ControlServer::serve(Instant now) {
  last_request_.clear();
  answered_.reset();
  std::vector<int> gone, answered;
  for (auto& [fd, connection] : connections_) {
    // A reload may have revoked the user since the connection was accepted.
    const bool is_revoked = !access_.may_attach(connection.user());
    if (is_revoked) ++refused_users_;
    if (is_revoked || connection.deadline() <= now) {
      gone.push_back(fd);
    } else if (!connection.has_unsent() && !connection.request().empty()) {
      answer_requests(connection);
      const bool is_of_use = connection.write(now) && !connection.is_done();
      (is_of_use ? answered : gone).push_back(fd);
    }
  }
  for (const int fd : gone) drop(fd);
  for (const int fd : answered) watch(connections_.at(fd));
  drop_slow_readers();
}

// One request of a connection and its repeats, then the others have their turn.
void ControlServer::answer_requests(ControlConnection& connection) {
  const std::string first(connection.request());
  const auto answer = answer_line(connection, first);
  while (connection.request() == first) {
    connection.answer(answer);
    connection.drop_request();
  }
}

ControlConnection::Answer ControlServer::answer_line(const ControlConnection& connection,
                                                     std::string_view request) {
  const auto parsed = parse_control_request(request);
  const bool only_looks = parsed && std::holds_alternative<StatusRequest>(*parsed);
  if (!only_looks && !access_.may_command(connection.user())) {
    return std::make_shared<const std::string>(
        to_line(refusal("only the fabric's own user may change the fabric")));
  }
  if (last_request_ == request && answered_ != nullptr) return answered_;
  last_request_ = request;
  answered_ = std::make_shared<const std::string>(
      to_line(parsed ? answer_(*parsed) : refusal(parsed.error().text)));
  return answered_;
}

std::size_t ControlServer::unsent_bytes() const {
  std::set<const std::string*> answers;
  std::size_t bytes = 0;
  for (const auto& [fd, connection] : connections_) {
    if (!connection.has_unsent()) continue;
    const std::string* newest = connection.newest_unsent().get();
    if (answers.insert(newest).second) bytes += newest->size();
  }
  return bytes;
}

void ControlServer::drop_slow_readers() {
  while (unsent_bytes() > kMaxUnsent) drop_stalest(&ControlConnection::has_unsent);
}

}  // namespace cepheus::live
