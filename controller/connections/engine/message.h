// Messages between connection daemons, and between a daemon and the programs of its host: one
// message a frame.
//
//     +----------------+--------+-----------------+----------------------+
//     | length, 4 B    | type   | fields          | tag, 20 B            |     length: of all that follows it
//     +----------------+--------+-----------------+----------------------+
//
// message.cc has one table of the fields of each type, in their order. Numbers are in network byte
// order. Only frames between daemons have the tag (peer_session.h). OFFER, ACCEPT or REFUSE, and
// ESTABLISHED or CANCEL set up MC-RDMA's groups (III-A, IV-A).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/types.h"

namespace cepheus::connections {

inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::uint16_t kDefaultPort = 18517;
inline constexpr std::size_t kMostData = 4096;     // bytes of an application's data
inline constexpr std::size_t kMostService = 64;    // bytes of a service's name
inline constexpr std::size_t kMostText = 512;      // bytes of a reason
inline constexpr std::size_t kMostReceivers = 16;  // of one connection
inline constexpr std::size_t kMostStatus = 512 << 10;
inline constexpr std::size_t kFrameHeader = 4;
// The longest frame from a peer or a program, and the longest from a daemon to a program.
inline constexpr std::size_t kMostRequest = 8 << 10;
inline constexpr std::size_t kMostEvent = kMostStatus + 64;

using Nonce = std::array<std::uint8_t, 16>;
using MemberName = std::array<std::uint8_t, 16>;  // opaque here: libmcast's mcast_member_t
using Data = std::vector<std::uint8_t>;

enum class MessageType : std::uint8_t {
  // Between daemons, both ways: identity, proof of the key, keep-alive, reason of a refusal.
  kHello = 1,
  kReady,
  kPing,
  kRefusal,  // also to programs; then the connection ends
  // From the sender's daemon.
  kOffer,  // also to the receiving program
  kCancel,
  kEstablished,
  kClosed,
  // From a receiver's daemon.
  kAccept,  // also from the receiving program
  kRefuse,
  kLeft,  // also to the sending program
  // From programs.
  kProgram,
  kListen,
  kConnect,
  kClose,
  kStatusRequest,
  // To programs.
  kListening,
  kNotListening,
  kConnecting,
  kConnected,
  kFailed,
  kStatus,
};

struct Member {
  wire::Ipv4 host;
  MemberName name{};
  Data data;
  friend bool operator==(const Member&, const Member&) = default;
};

// A message of any type. Fields that the type lacks have these defaults.
struct Message {
  MessageType type{};
  std::uint16_t version = kVersion;
  wire::Ipv4 host{};  // the sender of the message, or its subject
  wire::Ipv4 peer{};  // the address of the other end as the sender knows it; unset: any
  Nonce nonce{};
  bool is_signed = false;  // whether the speaker has a key
  std::uint32_t time_ms =
      0;  // HELLO: silence that the speaker bears; CONNECT: time limit, 0: the default
  std::uint64_t connection = 0;  // its number in the daemon that the other end is
  std::uint32_t request = 0;     // the sending program's own number of a CONNECT
  wire::Qpn virtual_qpn{};       // MC_ID of a sender group; 0: none
  std::string service{}, text{};
  MemberName name{};
  Data data{};
  std::vector<wire::Ipv4> hosts{};
  std::vector<Member> members{};
  std::string status{};  // JSON

  // Everything but the frame's length and tag. Empty if it is malformed or breaks a bound.
  static std::optional<Message> parse(std::span<const std::uint8_t> bytes);
  // Appends the form that parse() reads. Long texts are truncated. More data, hosts or members than
  // allowed are a bug.
  void emit(std::vector<std::uint8_t>& out) const;
  friend bool operator==(const Message&, const Message&) = default;
};

// A message about a connection.
Message about(MessageType type, std::uint64_t connection, std::string text = {});
// 1 to kMostService printable characters without blanks.
bool is_service(std::string_view name);
// `message` with the length before it.
std::vector<std::uint8_t> frame_of(const Message& message);

}  // namespace cepheus::connections
