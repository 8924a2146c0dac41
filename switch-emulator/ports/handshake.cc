// Messages are fixed structures, or a head and a text. Texts that are longer than their field are
// cut. Decoding checks size, magic, version and kind; texts are bounded by their field, and no
// other value is trusted here.
//
// A received datagram has at most kMaxMessage bytes and kGrantedFds descriptors; a longer one
// counts as empty. peer_process() uses SO_PEERPIDFD, or pidfd_open(2) on kernels before 6.5, which
// may find a successor of the same pid.
#include "switch-emulator/ports/handshake.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace cepheus::fabric {
namespace {

constexpr std::size_t kMaxMessage = 64 << 10;

enum Kind : std::uint16_t { kAttach = 0, kAttachOrAny = 1, kReserve = 2 };

struct Prologue {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t what;  // a client's Kind, or the fabric's WelcomeStatus
};

struct RawAttachRequest {
  Prologue prologue;
  ReservationId reservation;
  char host[64];
};

// Names or a reason follow, up to the datagram's end.
struct RawHosts {
  Prologue prologue;
  std::uint64_t value;  // the number of hosts, or the reservation
};

struct RawWelcome {
  Prologue prologue;
  char text[256];
  char name[64];
  std::uint32_t address;
  wire::Mac mac;
  wire::Mac gateway;
  std::uint64_t rate_bits_per_second;
  std::uint64_t slowest_bits_per_second;
  std::uint32_t mtu;
  std::uint32_t icrc_always;
  std::uint32_t host_index;
  std::uint32_t host_count;
  PoolGeometry pool;
  std::uint32_t area;
};
static_assert(sizeof(RawAttachRequest) == 80);
static_assert(sizeof(RawHosts) == 16);
static_assert(sizeof(RawWelcome) == 392);

template <std::size_t N>
void put_text(char (&field)[N], std::string_view text) {
  const std::size_t n = std::min(text.size(), N - 1);
  std::memcpy(field, text.data(), n);
}

template <std::size_t N>
std::string get_text(const char (&field)[N]) {
  return std::string(field, strnlen(field, N - 1));
}

template <typename Raw>
std::vector<std::uint8_t> to_datagram(const Raw& raw) {
  std::vector<std::uint8_t> datagram(sizeof raw);
  std::memcpy(datagram.data(), &raw, sizeof raw);
  return datagram;
}

std::vector<std::uint8_t> to_datagram(const RawHosts& raw, std::string_view text) {
  std::vector<std::uint8_t> datagram(sizeof raw + text.size());
  std::memcpy(datagram.data(), &raw, sizeof raw);
  std::copy(text.begin(), text.end(), datagram.begin() + sizeof raw);
  return datagram;
}

bool from_datagram(std::span<const std::uint8_t> datagram, RawHosts& raw, std::string& text) {
  if (datagram.size() < sizeof raw) return false;
  std::memcpy(&raw, datagram.data(), sizeof raw);
  const auto rest = datagram.subspan(sizeof raw);
  text.assign(rest.begin(), rest.end());
  return true;
}

std::optional<Prologue> prologue_of(std::span<const std::uint8_t> datagram) {
  Prologue prologue;
  if (datagram.size() < sizeof prologue) return std::nullopt;
  std::memcpy(&prologue, datagram.data(), sizeof prologue);
  if (prologue.magic != kHandshakeMagic) return std::nullopt;
  return prologue;
}

}  // namespace

std::vector<std::uint8_t> encode(const AttachRequest& hello) {
  RawAttachRequest raw{};
  raw.prologue = {kHandshakeMagic, hello.version, hello.or_any ? kAttachOrAny : kAttach};
  raw.reservation = hello.reservation;
  put_text(raw.host, hello.host);
  return to_datagram(raw);
}

std::vector<std::uint8_t> encode(const Welcome& welcome) {
  RawWelcome raw{};
  raw.prologue = {kHandshakeMagic, welcome.version, static_cast<std::uint16_t>(welcome.status)};
  put_text(raw.text, welcome.text);
  const HostIdentity& identity = welcome.identity;
  put_text(raw.name, identity.name);
  raw.address = identity.address.value();
  raw.mac = identity.mac;
  raw.gateway = identity.gateway;
  raw.rate_bits_per_second = identity.rate.bits_per_second;
  raw.slowest_bits_per_second = identity.slowest_rate.bits_per_second;
  raw.mtu = identity.mtu;
  raw.icrc_always = identity.icrc_always ? 1 : 0;
  raw.host_index = identity.host_index;
  raw.host_count = identity.host_count;
  raw.pool = welcome.pool;
  raw.area = welcome.area;
  return to_datagram(raw);
}

std::optional<AttachRequest> decode_attach_request(std::span<const std::uint8_t> datagram) {
  const auto prologue = prologue_of(datagram);
  if (!prologue) return std::nullopt;
  AttachRequest hello;
  hello.version = prologue->version;
  if (hello.version != kHandshakeVersion) return hello;
  RawAttachRequest raw;
  if (datagram.size() != sizeof raw || prologue->what > kAttachOrAny) return std::nullopt;
  std::memcpy(&raw, datagram.data(), sizeof raw);
  hello.host = get_text(raw.host);
  hello.or_any = prologue->what == kAttachOrAny;
  hello.reservation = raw.reservation;
  return hello;
}

std::vector<std::uint8_t> encode(const HostsWanted& wanted) {
  return to_datagram({{kHandshakeMagic, wanted.version, kReserve}, wanted.number}, wanted.names);
}

std::vector<std::uint8_t> encode(const HostsReserved& reserved) {
  constexpr auto kGranted = static_cast<std::uint16_t>(WelcomeStatus::kGranted);
  return to_datagram({{kHandshakeMagic, reserved.version, kGranted}, reserved.reservation},
                     reserved.names);
}

std::optional<HostsWanted> decode_hosts_wanted(std::span<const std::uint8_t> datagram) {
  const auto prologue = prologue_of(datagram);
  if (!prologue) return std::nullopt;
  HostsWanted wanted;
  wanted.version = prologue->version;
  if (wanted.version != kHandshakeVersion) return wanted;
  RawHosts raw;
  if (prologue->what != kReserve || !from_datagram(datagram, raw, wanted.names))
    return std::nullopt;
  if (raw.value > UINT32_MAX) return std::nullopt;
  wanted.number = static_cast<std::uint32_t>(raw.value);
  return wanted;
}

std::optional<HostsReserved> decode_hosts_reserved(std::span<const std::uint8_t> datagram) {
  const auto prologue = prologue_of(datagram);
  if (!prologue) return std::nullopt;
  HostsReserved reserved;
  reserved.version = prologue->version;
  if (reserved.version != kHandshakeVersion) return reserved;
  RawHosts raw;
  const bool granted = prologue->what == static_cast<std::uint16_t>(WelcomeStatus::kGranted);
  if (!granted || !from_datagram(datagram, raw, reserved.names)) return std::nullopt;
  reserved.reservation = raw.value;
  return reserved;
}

std::optional<Welcome> decode_welcome(std::span<const std::uint8_t> datagram) {
  const auto prologue = prologue_of(datagram);
  if (!prologue || prologue->what > static_cast<std::uint16_t>(WelcomeStatus::kAgain)) {
    return std::nullopt;
  }
  Welcome welcome;
  welcome.version = prologue->version;
  welcome.status = static_cast<WelcomeStatus>(prologue->what);
  if (welcome.version != kHandshakeVersion) return welcome;
  RawWelcome raw;
  if (datagram.size() != sizeof raw) return std::nullopt;
  std::memcpy(&raw, datagram.data(), sizeof raw);
  welcome.text = get_text(raw.text);
  HostIdentity& identity = welcome.identity;
  identity.name = get_text(raw.name);
  identity.address = wire::Ipv4(raw.address);
  identity.mac = raw.mac;
  identity.gateway = raw.gateway;
  identity.rate.bits_per_second = raw.rate_bits_per_second;
  identity.slowest_rate.bits_per_second = raw.slowest_bits_per_second;
  identity.mtu = raw.mtu;
  identity.icrc_always = raw.icrc_always != 0;
  identity.host_index = raw.host_index;
  identity.host_count = raw.host_count;
  welcome.pool = raw.pool;
  welcome.area = raw.area;
  return welcome;
}

bool send_message(int socket, std::span<const std::uint8_t> datagram, std::span<const int> fds) {
  iovec part{const_cast<std::uint8_t*>(datagram.data()), datagram.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kGrantedFds * sizeof(int))> control{};
  if (!fds.empty() && fds.size() <= kGrantedFds) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  const ssize_t sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(datagram.size());
}

std::optional<Message> receive_message(int socket) {
  Message message;
  message.data.resize(kMaxMessage);
  iovec part{message.data.data(), message.data.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kGrantedFds * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t received = 0;
  // ECONNRESET is reported once, if the peer closed before it had read all; its message follows.
  do {
    received = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (received < 0 && (errno == EINTR || errno == ECONNRESET));
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&header); part_of != nullptr;
       part_of = CMSG_NXTHDR(&header, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part_of->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part_of) + i * sizeof fd, sizeof fd);
      message.fds.emplace_back(fd);
    }
  }
  const bool whole = received > 0 && (header.msg_flags & MSG_TRUNC) == 0;
  message.data.resize(whole ? static_cast<std::size_t>(received) : 0);
  return message;
}

std::optional<PeerCredentials> peer_credentials(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return PeerCredentials{credentials.pid, credentials.uid};
}

UniqueFd peer_process(int socket) {
  int process = -1;
  socklen_t size = sizeof process;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &size) == 0) return UniqueFd(process);
  const auto peer = errno == ENOPROTOOPT ? peer_credentials(socket) : std::nullopt;
  if (!peer || peer->pid <= 0) return UniqueFd();
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, peer->pid, 0)));
}

}  // namespace cepheus::fabric
