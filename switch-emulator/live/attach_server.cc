#include "switch-emulator/live/attach_server.h"

#include <poll.h>
#include <sys/syscall.h>

#include <charconv>
#include <optional>

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

std::optional<std::size_t> parse_index(const std::string& text) {
  std::size_t index = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + 1, end, index);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return index;
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
      clients_(datapath.host_count()) {}

AttachServer::~AttachServer() {
  for (std::size_t host = 0; host < clients_.size(); ++host) {
    if (clients_[host].socket.is_open()) detach(host);
  }
  for (const auto& [fd, socket] : unheard_) poller_.forget(fd);
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
  if (const auto hello = fabric::decode_hello(message->data)) serve(std::move(socket), *hello);
}

void AttachServer::serve(fabric::UniqueFd socket, const fabric::Hello& hello) {
  if (hello.version != fabric::kHandshakeVersion) {
    return refuse(socket.get(), fabric::WelcomeStatus::kWrongVersion,
                  "the fabric speaks port protocol " + std::to_string(fabric::kHandshakeVersion));
  }
  const auto peer = fabric::peer_credentials(socket.get());
  if (!peer)
    return refuse(socket.get(), fabric::WelcomeStatus::kFailed,
                  "the fabric can't tell who you are");
  if (!access_.may_attach(peer->uid)) {
    ++refused_users_;
    return refuse(socket.get(), fabric::WelcomeStatus::kFailed,
                  "user " + std::to_string(peer->uid) +
                      " may not attach: name it under users in the topology's [fabric]");
  }
  const Choice choice = choose(hello.host);
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

std::string AttachServer::describe_hosts() const {
  const std::size_t count = datapath_.host_count();
  const std::string& first = datapath_.identity(0).name;
  return count == 1 ? first : first + " .. " + datapath_.identity(count - 1).name;
}

AttachServer::Choice AttachServer::take_named(std::size_t host) {
  if (is_free(host)) return {host, fabric::WelcomeStatus::kGranted, ""};
  if (const fabric::WirePort* wire = datapath_.wire_port(host)) {
    return {host, fabric::WelcomeStatus::kHostTaken,
            "host " + datapath_.identity(host).name + " is on interface " +
                wire->config().interface + ": ask for a host without one"};
  }
  const pid_t pid = datapath_.shared_port(host)->client().pid;
  return {host, fabric::WelcomeStatus::kHostTaken,
          "host " + datapath_.identity(host).name + " is held by " +
              (pid > 0 ? "pid " + std::to_string(pid) : std::string("a process elsewhere")) +
              ": end it, or ask for another host"};
}

AttachServer::Choice AttachServer::choose(const std::string& wanted) {
  const std::size_t count = datapath_.host_count();
  if (wanted.empty()) {
    for (std::size_t host = 0; host < count; ++host) {
      if (is_free(host)) return {host, fabric::WelcomeStatus::kGranted, ""};
    }
    return {0, fabric::WelcomeStatus::kHostTaken,
            "all " + std::to_string(count) + " hosts of the fabric are taken: start one with more"};
  }
  const auto address = wire::Ipv4::parse(wanted);
  const auto index = wanted[0] == '#' ? parse_index(wanted) : std::nullopt;
  for (std::size_t host = 0; host < count; ++host) {
    const fabric::HostIdentity& identity = datapath_.identity(host);
    if (identity.name == wanted || address == identity.address || index == host) {
      return take_named(host);
    }
  }
  return {0, fabric::WelcomeStatus::kNoSuchHost,
          "no host '" + wanted + "' in the fabric: it has " + describe_hosts()};
}

}  // namespace cepheus::live
