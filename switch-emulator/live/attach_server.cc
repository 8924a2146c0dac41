#include "switch-emulator/live/attach_server.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include <string_view>
#include <unordered_map>

#include "switch-emulator/live/clock.h"

namespace cepheus::live {
namespace {

constexpr std::size_t kMaxUnheard = 64;

fabric::UniqueFd watch_process(pid_t pid) {
  return fabric::UniqueFd(pid > 0 ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1);
}

bool is_ready(int fd, short events) {
  pollfd asked{fd, events, 0};
  return fd >= 0 && poll(&asked, 1, 0) > 0;
}

// Not to be guessed by others; 0: the kernel has no randomness yet.
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

void refuse(int socket, fabric::WelcomeStatus status, std::string text) {
  fabric::Welcome welcome;
  welcome.status = status;
  welcome.text = std::move(text);
  fabric::send_message(socket, encode(welcome));
}

}  // namespace

AttachServer::AttachServer(Poller& poller, Datapath& datapath, const ListeningSocket& socket,
                           const Access& access)
    : poller_(poller),
      datapath_(datapath),
      socket_(socket),
      access_(access),
      clients_(datapath.host_count()),
      assignment_(hosts_of(datapath), *this) {}

AttachServer::~AttachServer() {
  for (std::size_t host = 0; host < clients_.size(); ++host) {
    if (clients_[host].socket.is_open()) detach(host);
  }
  for (const auto& [fd, socket] : unheard_) poller_.forget(fd);
  for (const auto& [fd, launcher] : launchers_) poller_.forget(fd);
  poller_.forget(socket_.fd());
}

bool AttachServer::start() {
  return poller_.watch(socket_.fd(), Poller::kIn, [this](std::uint32_t) { accept_all(); });
}

void AttachServer::accept_all() {
  for (fabric::UniqueFd socket = socket_.accept(); socket.is_open(); socket = socket_.accept()) {
    const int fd = socket.get();
    if (unheard_.size() == kMaxUnheard) {  // silent connections give way to new ones
      poller_.forget(unheard_.begin()->first);
      unheard_.erase(unheard_.begin());
    }
    if (!poller_.watch(fd, Poller::kIn | Poller::kHangup,
                       [this, fd](std::uint32_t) { hear(fd); })) {
      continue;
    }
    unheard_.insert_or_assign(fd, std::move(socket));
  }
}

void AttachServer::hear(int fd) {
  const auto message = fabric::receive_message(fd);
  if (!message) return;
  const auto found = unheard_.find(fd);
  if (found == unheard_.end()) return;
  fabric::UniqueFd socket = std::move(found->second);
  unheard_.erase(found);
  poller_.forget(fd);
  if (const auto hello = fabric::decode_hello(message->data))
    return serve(std::move(socket), *hello);
  if (const auto wanted = fabric::decode_hosts_wanted(message->data))
    reserve(std::move(socket), *wanted);
}

std::optional<fabric::PeerCredentials> AttachServer::admit(int socket) {
  const auto peer = fabric::peer_credentials(socket);
  if (!peer) {
    refuse(socket, fabric::WelcomeStatus::kFailed, "the fabric can't tell who you are");
    return std::nullopt;
  }
  if (access_.may_attach(peer->uid)) return peer;
  ++refused_users_;
  refuse(socket, fabric::WelcomeStatus::kFailed,
         "user " + std::to_string(peer->uid) +
             " may not attach: name it under users in the topology's [fabric]");
  return std::nullopt;
}

void AttachServer::serve(fabric::UniqueFd socket, const fabric::Hello& hello) {
  if (hello.version != fabric::kHandshakeVersion) {
    return refuse(socket.get(), fabric::WelcomeStatus::kWrongVersion,
                  "the fabric speaks port protocol " + std::to_string(fabric::kHandshakeVersion));
  }
  const auto peer = admit(socket.get());
  if (!peer) return;
  forget_ended_launchers();
  const auto choice = assignment_.choose(hello);
  if (choice.status != fabric::WelcomeStatus::kGranted) {
    return refuse(socket.get(), choice.status, choice.text);
  }
  grant(std::move(socket), choice.host, *peer);
}

void AttachServer::grant(fabric::UniqueFd socket, std::size_t host,
                         const fabric::PeerCredentials& peer) {
  fabric::SwitchPort& port = *datapath_.shared_port(host);
  const auto fds = port.open(peer);
  if (!fds) return refuse(socket.get(), fabric::WelcomeStatus::kFailed, fds.error().text);

  Client& client = clients_[host];
  client.socket = std::move(socket);
  client.process = watch_process(peer.pid);
  const auto on_end = [this, host](std::uint32_t) { detach(host); };
  const bool watched =
      poller_.watch(client.socket.get(), Poller::kHangup, on_end) &&
      (!client.process.is_open() || poller_.watch(client.process.get(), Poller::kIn, on_end)) &&
      poller_.watch(port.doorbell(), Poller::kIn | Poller::kEdge,
                    [this, host](std::uint32_t) { datapath_.wake(host); });
  if (!watched) {
    refuse(client.socket.get(), fabric::WelcomeStatus::kFailed,
           "the fabric can't watch another client");
    return detach(host);
  }
  fabric::Welcome welcome;
  welcome.identity = datapath_.identity(host);
  welcome.pool = datapath_.pools().geometry();
  welcome.area = static_cast<std::uint32_t>(host);
  if (!fabric::send_message(client.socket.get(), encode(welcome), *fds)) return detach(host);
  port.forget_granted();
  datapath_.attach(monotonic_now(), host);
}

void AttachServer::detach(std::size_t host) {
  Client& client = clients_[host];
  if (!client.socket.is_open()) return;
  poller_.forget(client.socket.get());
  if (client.process.is_open()) poller_.forget(client.process.get());
  poller_.forget(datapath_.shared_port(host)->doorbell());
  client = {};
  datapath_.detach(monotonic_now(), host);
}

// A port whose client has just died is free, even if the news are still in the queue.
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
  if (const fabric::WirePort* wire = datapath_.wire_port(host)) {
    return "is on interface " + wire->config().interface + ": ask for a host without one";
  }
  const pid_t pid = datapath_.shared_port(host)->client().pid;
  return "is held by " + (pid > 0 ? "pid " + std::to_string(pid) : "a process elsewhere") +
         ": end it, or ask for another host";
}

void AttachServer::reserve(fabric::UniqueFd socket, const fabric::HostsWanted& wanted) {
  const auto peer = admit(socket.get());
  if (!peer) return;
  const int fd = socket.get();
  const fabric::ReservationId id = random_id();
  if (id == 0)
    return refuse(fd, fabric::WelcomeStatus::kFailed, "the kernel has no randomness yet: wait");
  forget_ended_launchers();
  const auto reserved = assignment_.reserve(wanted, id, peer->pid);
  if (reserved.status != fabric::WelcomeStatus::kGranted) {
    return refuse(fd, reserved.status, reserved.text);
  }
  launchers_[fd] = {std::move(socket), id};
  const auto on_end = [this, fd](std::uint32_t) { end_reservation(fd); };
  if (!poller_.watch(fd, Poller::kHangup, on_end)) {
    refuse(fd, fabric::WelcomeStatus::kFailed, "the fabric can't watch another client");
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
    const int fd = (next++)->first;
    if (is_ready(fd, POLLRDHUP)) end_reservation(fd);
  }
}

void AttachServer::tell_reservations(std::vector<SwitchStatus>& switches) const {
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
