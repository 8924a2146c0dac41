// A peer is pending until its first message, then a client of a host or a launcher with a
// reservation. A client is watched by its socket and by its process (pidfd_open(2)), because forked
// children may keep the socket. The port opens and closes as tasks on the datapath's thread.
//
// With kMaxPending silent peers, the user with most of them loses the longest silent one. Events
// may be late: before a host or a reservation is refused, its owner's end is checked directly.
#include "switch-emulator/live/control/attach_server.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "wire/clock.h"

namespace cepheus::live {
namespace {

using fabric::PeerCredentials;
using fabric::UniqueFd;
using fabric::WelcomeStatus;
using wire::Instant;

bool is_ready(int fd, short events) {
  pollfd watched{fd, events, 0};
  return fd >= 0 && poll(&watched, 1, 0) > 0;
}

// Unguessable; 0: the kernel has no randomness yet.
fabric::ReservationId random_id() {
  fabric::ReservationId id = 0;
  return getrandom(&id, sizeof id, GRND_NONBLOCK) == sizeof id ? id : 0;
}

std::vector<HostAssignment::Host> hosts_of(const Datapath& datapath) {
  std::vector<HostAssignment::Host> hosts;
  for (std::size_t host = 0; host < datapath.host_count(); ++host) {
    const fabric::HostIdentity& identity = datapath.identity(host);
    hosts.push_back({identity.name, identity.address});
  }
  return hosts;
}

fabric::Welcome refusal(WelcomeStatus status, std::string text) {
  fabric::Welcome welcome;
  welcome.status = status;
  welcome.text = std::move(text);
  return welcome;
}

void refuse(int socket, WelcomeStatus status, std::string text) {
  fabric::send_message(socket, encode(refusal(status, std::move(text))));
}

}  // namespace

AttachServer::AttachServer(Poller& poller, Datapath& datapath, Poller& doorbells, TaskQueue& tasks,
                           ListeningSocket& socket, const Access& access, wire::Duration time_limit)
    : poller_(poller),
      datapath_(datapath),
      doorbells_(doorbells),
      tasks_(tasks),
      socket_(socket),
      access_(access),
      time_limit_(time_limit),
      clients_(datapath.host_count()),
      assignment_(hosts_of(datapath), *this) {}

void AttachServer::close() {
  for (const auto& [fd, pending_peer] : pending_) poller_.forget(fd);
  for (const auto& [fd, launcher] : launchers_) poller_.forget(fd);
  poller_.forget(socket_.fd());
  pending_.clear();
  launchers_.clear();
  socket_.close();
}

bool AttachServer::start() {
  return poller_.watch(socket_.fd(), Poller::kIn, [this](std::uint32_t) { accept_some(); });
}

void AttachServer::accept_some() {
  const auto full = encode(refusal(WelcomeStatus::kFailed, std::string(kOutOfDescriptors)));
  for (int n = 0; n < ListeningSocket::kAcceptsAtOnce; ++n) {
    UniqueFd socket = socket_.accept(full);
    if (!socket.is_open()) return;
    const auto peer = fabric::peer_credentials(socket.get());
    if (!peer) {
      refuse(socket.get(), WelcomeStatus::kFailed,
             "the fabric can't read the user of this connection");
    } else if (lets_in(socket.get(), *peer)) {
      admit(std::move(socket), *peer);
    }
  }
}

bool AttachServer::lets_in(int socket, const PeerCredentials& peer) {
  if (access_.may_attach(peer.uid)) return true;
  ++refused_users_;
  refuse(socket, WelcomeStatus::kFailed,
         "user " + std::to_string(peer.uid) +
             " may not attach: name it under users in the topology's [fabric]");
  return false;
}

void AttachServer::admit(UniqueFd socket, const PeerCredentials& peer) {
  if (pending_.size() >= kMaxPending) dismiss_longest_silent();
  const int fd = socket.get();
  if (!poller_.watch(fd, Poller::kIn | Poller::kHangup,
                     [this, fd](std::uint32_t) { on_readable(fd); })) {
    return refuse(fd, WelcomeStatus::kFailed, "the fabric can't watch another client");
  }
  pending_.insert_or_assign(
      fd, PendingPeer{std::move(socket), peer, wire::monotonic_now() + time_limit_});
  on_readable(fd);  // most have sent their AttachRequest by now
}

// The longest silent one of the user with most connections here.
void AttachServer::dismiss_longest_silent() {
  std::map<uid_t, std::size_t> by_user;
  for (const auto& [fd, pending_peer] : pending_) ++by_user[pending_peer.peer.uid];
  const auto count = [](const auto& each) { return each.second; };
  const uid_t user = std::ranges::max_element(by_user, {}, count)->first;
  const std::pair<const int, PendingPeer>* longest = nullptr;
  for (const auto& each : pending_) {
    if (each.second.peer.uid != user) continue;
    if (longest == nullptr || each.second.leaves < longest->second.leaves) longest = &each;
  }
  dismiss(longest->first, "too many silent connections; attach again");
}

void AttachServer::dismiss(int fd, const char* why) {
  const auto found = pending_.find(fd);
  refuse(fd, WelcomeStatus::kAgain, why);
  poller_.forget(fd);
  pending_.erase(found);
}

void AttachServer::expire(Instant now) {
  for (auto at = pending_.begin(); at != pending_.end();) {
    const auto each = at++;
    if (each->second.leaves <= now) dismiss(each->first, "no request to attach arrived in time");
  }
}

Instant AttachServer::deadline() const {
  Instant first = wire::kNever;
  for (const auto& [fd, pending_peer] : pending_) first = std::min(first, pending_peer.leaves);
  return first;
}

void AttachServer::on_readable(int fd) {
  const auto message = fabric::receive_message(fd);
  if (!message) return;
  const auto found = pending_.find(fd);
  if (found == pending_.end()) return;
  PendingPeer pending_peer = std::move(found->second);
  pending_.erase(found);
  poller_.forget(fd);
  // A reload may have revoked the user since the connection was accepted.
  if (!lets_in(fd, pending_peer.peer)) return;
  if (const auto hello = fabric::decode_attach_request(message->data)) {
    serve(std::move(pending_peer.socket), pending_peer.peer, *hello);
  } else if (const auto wanted = fabric::decode_hosts_wanted(message->data)) {
    reserve(std::move(pending_peer.socket), pending_peer.peer, *wanted);
  }
}

void AttachServer::serve(UniqueFd socket, const PeerCredentials& peer,
                         const fabric::AttachRequest& hello) {
  if (hello.version != fabric::kHandshakeVersion) {
    return refuse(socket.get(), WelcomeStatus::kWrongVersion,
                  "the fabric has port protocol " + std::to_string(fabric::kHandshakeVersion));
  }
  forget_ended_launchers();
  const auto choice = assignment_.choose(hello, peer.uid);
  if (choice.status != WelcomeStatus::kGranted) {
    return refuse(socket.get(), choice.status, choice.text);
  }
  grant(std::move(socket), choice.host, peer);
}

void AttachServer::grant(UniqueFd socket, std::size_t host, const PeerCredentials& peer) {
  Client& client = clients_[host];
  client.socket = std::move(socket);
  client.process = fabric::peer_process(client.socket.get());
  client.pid = peer.pid;
  const auto on_end = [this, host](std::uint32_t) { detach(host); };
  const bool is_watched =
      poller_.watch(client.socket.get(), Poller::kHangup, on_end) &&
      (!client.process.is_open() || poller_.watch(client.process.get(), Poller::kIn, on_end));
  if (!is_watched) {
    refuse(client.socket.get(), WelcomeStatus::kFailed, "the fabric can't watch another client");
    return detach(host);
  }
  const auto fds = open_port(host, peer);
  if (!fds) {
    refuse(client.socket.get(), WelcomeStatus::kFailed, fds.error().text);
    return detach(host);
  }
  fabric::Welcome welcome;
  welcome.identity = datapath_.identity(host);
  welcome.pool = datapath_.pools().geometry();
  welcome.area = static_cast<std::uint32_t>(host);
  if (!fabric::send_message(client.socket.get(), encode(welcome), *fds)) return detach(host);
  tasks_.run([&] {
    if (is_still(host)) datapath_.shared_port(host)->forget_granted();
  });
}

wire::Result<fabric::GrantedFds> AttachServer::open_port(std::size_t host,
                                                         const PeerCredentials& peer) {
  fabric::SwitchPort& port = *datapath_.shared_port(host);
  wire::Result<fabric::GrantedFds> fds;
  tasks_.run([&] {
    fds = port.open(peer);
    if (!fds) return;
    if (!doorbells_.watch(port.doorbell(), Poller::kIn | Poller::kEdge,
                          [this, host](std::uint32_t) { watch_doorbell(host); })) {
      port.close();
      fds = wire::unavailable("the fabric can't watch another doorbell");
      return;
    }
    clients_[host].attachment = port.attachment();
    datapath_.attach(wire::monotonic_now(), host);
  });
  return fds;
}

// On the datapath's thread.
void AttachServer::watch_doorbell(std::size_t host) {
  if (!datapath_.wake(host)) doorbells_.forget(datapath_.shared_port(host)->doorbell());
}

// On the datapath's thread: whether the port is still this client's, and open.
bool AttachServer::is_still(std::size_t host) const {
  const fabric::SwitchPort& port = *datapath_.shared_port(host);
  return port.is_open() && port.attachment() == clients_[host].attachment;
}

void AttachServer::detach(std::size_t host) {
  Client& client = clients_[host];
  if (!client.socket.is_open()) return;
  poller_.forget(client.socket.get());
  if (client.process.is_open()) poller_.forget(client.process.get());
  tasks_.run([&] {
    if (!is_still(host)) return;
    doorbells_.forget(datapath_.shared_port(host)->doorbell());
    datapath_.detach(wire::monotonic_now(), host);
  });
  client = {};
}

void AttachServer::detach_all() {
  for (std::size_t host = 0; host < clients_.size(); ++host) detach(host);
}

// By the descriptor, because the pid may belong to another process once this one has ended.
wire::Result<void> AttachServer::kill(const std::string& host, pid_t pid) const {
  for (std::size_t at = 0; at < clients_.size(); ++at) {
    const Client& client = clients_[at];
    const bool is_it = datapath_.identity(at).name == host && client.socket.is_open();
    if (!is_it || client.pid != pid) continue;
    if (!client.process.is_open()) {
      return wire::fail(wire::ErrorCode::kRefused,
                        "the kernel has no descriptors of processes (pidfd_open, Linux 5.3): kill "
                        "it on its host");
    }
    if (syscall(SYS_pidfd_send_signal, client.process.get(), SIGKILL, nullptr, 0) == 0) return {};
    return wire::fail(wire::ErrorCode::kRefused,
                      std::string("it can't be killed: ") + std::strerror(errno));
  }
  return wire::fail(wire::ErrorCode::kRefused, "that process has ended");
}

void AttachServer::on_closed(std::size_t host, std::uint64_t attachment) {
  if (clients_[host].attachment == attachment) detach(host);
}

// The port of a client that has just died is free, even if its event is still in the queue.
bool AttachServer::is_free(std::size_t host) {
  if (datapath_.shared_port(host) == nullptr) return false;
  const Client& client = clients_[host];
  if (client.socket.is_open() &&
      (is_ready(client.socket.get(), POLLRDHUP) || is_ready(client.process.get(), POLLIN))) {
    detach(host);
  }
  return !client.socket.is_open();
}

std::string AttachServer::why_not_free(std::size_t host) const {
  if (const std::string interface = datapath_.interface_of(host); !interface.empty()) {
    return "is on interface " + interface + ": choose a host without one";
  }
  const pid_t pid = clients_[host].pid;
  return "is held by " + (pid > 0 ? "pid " + std::to_string(pid) : "a process elsewhere") +
         ": end it, or choose another host";
}

void AttachServer::reserve(UniqueFd socket, const PeerCredentials& peer,
                           const fabric::HostsWanted& wanted) {
  const int fd = socket.get();
  const fabric::ReservationId id = random_id();
  if (id == 0) return refuse(fd, WelcomeStatus::kFailed, "the kernel has no randomness yet: wait");
  forget_ended_launchers();
  const auto reserved = assignment_.reserve(wanted, id, peer);
  if (reserved.status != WelcomeStatus::kGranted) {
    return refuse(fd, reserved.status, reserved.text);
  }
  launchers_[fd] = {std::move(socket), id, peer.uid};
  const auto on_end = [this, fd](std::uint32_t) { end_reservation(fd); };
  if (!poller_.watch(fd, Poller::kHangup, on_end)) {
    refuse(fd, WelcomeStatus::kFailed, "the fabric can't watch another client");
    return end_reservation(fd);
  }
  const fabric::HostsReserved answer{.reservation = id, .names = reserved.names};
  if (!fabric::send_message(fd, encode(answer))) end_reservation(fd);
}

void AttachServer::end_reservation(int fd) {
  const auto found = launchers_.find(fd);
  poller_.forget(fd);
  assignment_.end(found->second.reservation);
  launchers_.erase(found);
}

void AttachServer::forget_ended_launchers() {
  for (auto next = launchers_.begin(); next != launchers_.end();) {
    const auto& [fd, launcher] = *next++;
    if (is_ready(fd, POLLRDHUP) || !access_.may_attach(launcher.user)) end_reservation(fd);
  }
}

void AttachServer::show_reservations(std::vector<SwitchStatus>& switches) const {
  std::unordered_map<std::string_view, pid_t> holders;
  for (std::size_t host = 0; host < datapath_.host_count(); ++host) {
    if (const auto pid = assignment_.reserved_by(host)) {
      holders.emplace(datapath_.identity(host).name, *pid);
    }
  }
  for (SwitchStatus& one : switches) {
    for (PortStatus& port : one.ports) {
      const auto found = holders.find(port.name);
      if (found == holders.end()) continue;
      port.reserved = true;
      port.reserved_by = found->second;
    }
  }
}

}  // namespace cepheus::live
