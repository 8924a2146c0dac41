// Messages on a control connection, between a volume's writer or an observer, and a replica.
//
//     +----------------+--------+-----------------+
//     | length, 4 B    | type   | body            |     length: of type and body
//     +----------------+--------+-----------------+
//
// The replica begins with a challenge; the other end answers with a hello; the replica welcomes or
// refuses it. Requests and answers follow. Everything has a fixed layout; challenge and hello have
// its version.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replica/engine/control_message.h"

namespace cepheus::replica {

inline constexpr std::uint16_t kControlVersion = 4;
// A bitmap of 1 MiB has a bit for each chunk.
inline constexpr std::size_t kMostBitmap = std::size_t{1} << 20;
inline constexpr std::uint64_t kMostChunks = 8 * kMostBitmap;
inline constexpr std::size_t kMostFrame = kMostBitmap + 4096;
// From a peer that is not welcomed yet.
inline constexpr std::size_t kMostGreeting = 1024;
inline constexpr std::size_t kFrameHeader = 4;

using Nonce = std::array<std::uint8_t, 16>;
using Tag = std::array<std::uint8_t, 20>;
using Digest = std::array<std::uint8_t, 16>;

enum class MessageType : std::uint8_t {
  kChallenge = 1,
  kHello,
  kWelcome,
  kRefusal,
  kRequest,
  kAnswer,
  kStatusRequest,
  kStatus,
  kDigestRequest,
  kDigests,
};

struct Challenge {
  static constexpr MessageType kType = MessageType::kChallenge;
  std::uint16_t version = kControlVersion;
  Nonce nonce{};
  friend bool operator==(const Challenge&, const Challenge&) = default;
};

enum class Role : std::uint8_t { kWriter = 1, kObserver = 2 };

struct VolumeHello {
  static constexpr MessageType kType = MessageType::kHello;
  std::uint16_t version = kControlVersion;
  Role role = Role::kObserver;
  std::string volume;
  std::uint8_t place = 0, count = 0;  // of this replica in the writer's list; observers: 0
  Nonce nonce{};
  Tag tag{};  // over the challenge's nonce and all fields above; zeros without a key
  friend bool operator==(const VolumeHello&, const VolumeHello&) = default;
};

struct Welcome {
  static constexpr MessageType kType = MessageType::kWelcome;
  Geometry geometry;
  Tag tag{};  // over the hello's nonce and all fields above
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// The address of a queue pair.
struct RcName {
  std::uint32_t ipv4 = 0, qpn = 0, psn = 0;
  std::uint32_t path_mtu = 0;  // the largest of its port; both ends take the smaller one
  friend bool operator==(const RcName&, const RcName&) = default;
};

// The writer's knowledge about this replica, for observers of the replica.
struct Progress {
  bool is_in_sync = false;
  std::uint32_t lacking = 0;       // chunks
  std::uint64_t copied_bytes = 0;  // to any replica, since the writer came
  std::uint64_t copy_rate = 0;     // bytes a second, of late
  friend bool operator==(const Progress&, const Progress&) = default;
};

// The group for writes: Cepheus, or MC-RDMA with the writer as its one sender.
enum class Multicast : std::uint8_t { kCepheus, kMcRdma };
const char* to_string(Multicast multicast);  // "cepheus", "mcrdma"
std::optional<Multicast> multicast_of(std::string_view name);

// A request. With kJoin: the writer's end of the connection for reads and copies, and the kind of
// group. With kPing: the progress of copies.
struct RequestMessage {
  static constexpr MessageType kType = MessageType::kRequest;
  Request request;
  RcName rc{};
  Multicast multicast = Multicast::kCepheus;
  Progress progress{};
  friend bool operator==(const RequestMessage&, const RequestMessage&) = default;
};

// The number of the region that is a replica's data, in every group of a volume.
inline constexpr std::uint16_t kDataRegion = 1;

struct JoinReply {
  std::array<std::uint8_t, 16> member{};  // mcast_member_t
  std::array<std::uint8_t, 32> region{};  // mcast_region_t of all data; zeros with kCepheus
  RcName rc{};
  std::uint32_t rkey = 0;     // of all data
  std::uint64_t address = 0;  // its address
  friend bool operator==(const JoinReply&, const JoinReply&) = default;
};

struct AnswerMessage {
  static constexpr MessageType kType = MessageType::kAnswer;
  Answer answer;
  JoinReply join{};  // kJoin, kDone
  std::string text;  // kFailed: why
  friend bool operator==(const AnswerMessage&, const AnswerMessage&) = default;
};

// Digests of `unit` bytes each, from `offset` on; the last one may cover fewer.
struct DigestRequest {
  static constexpr MessageType kType = MessageType::kDigestRequest;
  std::uint64_t offset = 0, length = 0;
  std::uint32_t unit = 0;
  friend bool operator==(const DigestRequest&, const DigestRequest&) = default;
};
struct Digests {
  static constexpr MessageType kType = MessageType::kDigests;
  DigestRequest request{};
  std::vector<Digest> digests;
  friend bool operator==(const Digests&, const Digests&) = default;
};

// Each appends a whole frame.
template <typename Message>
void encode(const Message& message, std::vector<std::uint8_t>& out);
void encode_refusal(std::string_view why, std::vector<std::uint8_t>& out);
void encode_status_request(std::vector<std::uint8_t>& out);
void encode_status(std::string_view json, std::vector<std::uint8_t>& out);

// From a frame's body; empty unless the body is exactly one message.
template <typename Message>
std::optional<Message> decode(std::span<const std::uint8_t> body);
std::optional<std::string> decode_text(std::span<const std::uint8_t> body);

// The bytes that the tags of a hello and of a welcome sign.
std::vector<std::uint8_t> covered(const Nonce& challenge, const VolumeHello& hello);
std::vector<std::uint8_t> covered(const Nonce& hello, const Welcome& welcome);

}  // namespace cepheus::replica
