// How a client gets a port: one AttachRequest, one Welcome over a SOCK_SEQPACKET Unix socket,
// descriptors with SCM_RIGHTS.
//
//   client -> fabric   AttachRequest { magic, version, kind, reservation, host wanted }
//   fabric -> client   Welcome { magic, version, status, identity, geometry, text }
//                      granted: with the port's segment, the payload pool, the switch's doorbell,
//                      the client's doorbell
//
// A launcher reserves hosts for the processes of its job, all that it requests or none:
//
//   client -> fabric   HostsWanted { magic, version, kind, number, names }
//   fabric -> client   HostsReserved { magic, version, reservation, names }, or a Welcome with the
//                      reason
//
// A reserved host is given only to processes of the launcher's user with its name and the
// reservation in their AttachRequest. Then the socket stays open, silent: its end is the end of the
// attachment, or of the reservation. Magic and version come first and keep their places in every
// version, so that each side can report the other's version. Native byte order: both ends run on
// one machine.
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "switch-emulator/ports/host_port.h"
#include "switch-emulator/ports/payload_pool.h"
#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"

namespace cepheus::fabric {

inline constexpr std::uint32_t kHandshakeMagic = 0x43455048;  // "CEPH", visible in a trace
inline constexpr std::uint16_t kHandshakeVersion = 3;

using ReservationId = std::uint64_t;  // unguessable; 0: none

struct AttachRequest {
  std::uint16_t version = kHandshakeVersion;
  std::string host;     // name, address, "#index", or empty for the first free host
  bool or_any = false;  // if that host is taken or reserved, the first free one
  ReservationId reservation = 0;
};

struct HostsWanted {
  std::uint16_t version = kHandshakeVersion;
  std::uint32_t number = 0;  // number of free hosts, if none is named; 0: all free ones
  std::string names;         // as AttachRequest::host, separated by commas
};

enum class WelcomeStatus : std::uint16_t {
  kGranted = 0,
  kWrongVersion = 1,
  kNoSuchHost = 2,
  kHostTaken = 3,
  kFailed = 4,  // the fabric could not set the port up
  kAgain = 5,   // others needed the place: connect again
};

struct Welcome {
  std::uint16_t version = kHandshakeVersion;
  WelcomeStatus status = WelcomeStatus::kGranted;
  std::string text;  // the reason
  HostIdentity identity;
  PoolGeometry pool;
  std::uint32_t area = 0;  // the client's
};

struct HostsReserved {
  std::uint16_t version = kHandshakeVersion;
  ReservationId reservation = 0;
  std::string names;  // separated by commas
};

// Descriptors that come with a granted Welcome, in this order.
enum GrantedFd : std::size_t {
  kSegmentFd,
  kPoolFd,
  kSwitchDoorbellFd,
  kClientDoorbellFd,  // ports/bell.h
  kGrantedFds
};
using GrantedFds = std::array<int, kGrantedFds>;

// Messages as datagrams. Decoding refuses other lengths, kinds and magics; of another version it
// returns only the version.
std::vector<std::uint8_t> encode(const AttachRequest& hello);
std::vector<std::uint8_t> encode(const Welcome& welcome);
std::vector<std::uint8_t> encode(const HostsWanted& wanted);
std::vector<std::uint8_t> encode(const HostsReserved& reserved);
std::optional<AttachRequest> decode_attach_request(std::span<const std::uint8_t> datagram);
std::optional<HostsWanted> decode_hosts_wanted(std::span<const std::uint8_t> datagram);
std::optional<HostsReserved> decode_hosts_reserved(std::span<const std::uint8_t> datagram);
std::optional<Welcome> decode_welcome(std::span<const std::uint8_t> datagram);

// Sends one datagram, without blocking and without SIGPIPE; false if the peer is gone or does not
// read.
bool send_message(int socket, std::span<const std::uint8_t> datagram,
                  std::span<const int> fds = {});

// One received datagram with its descriptors (close-on-exec).
struct Message {
  std::vector<std::uint8_t> data;
  std::vector<UniqueFd> fds;
};
// Without blocking: empty if no datagram is there (errno EAGAIN), data empty if the peer has
// closed.
std::optional<Message> receive_message(int socket);

struct PeerCredentials {
  pid_t pid = 0;  // 0 if the peer is in a PID namespace that is invisible from here
  uid_t uid = 0;
};
std::optional<PeerCredentials> peer_credentials(int socket);
// The process that connected: readable once it has ended. With Linux 6.5 or later it is never
// another process that got the same pid since. Closed: it has ended, or can't be watched.
UniqueFd peer_process(int socket);

}  // namespace cepheus::fabric
