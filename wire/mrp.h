// MFT registration protocol, version 2 (paper III-C): UDP datagrams between leader, switches and
// hosts.
//
//   |  version  |   type    |        flags          |
//   |         epoch         |          seq          |
//   |         total         |        length         |   of header and records, bytes
//   |                    McstID                     |
//   |                leader instance                |   20 bytes, laid out so in every version
//   then records of whole 32-bit words, this word among them:
//   |o|  type   |   words   |          ...          |   o: whoever does not know the type skips it
//   MEMBER, 16 bytes:
//   |0|    1    |     4     |     control port      |
//   |                     IPv4                      |
//   |  flags    |               QPN                 |
//   |                     token                     |
//   REGION, 28 bytes, in PUBLISH alone: wire/publication.h
//
// The instance tells apart two leader processes on one host; leader identity is (source IP,
// instance). A 1500-byte MTU carries 89 members and a signature (mrp_key.h); signed or not, every
// datagram leaves room for it. The paper's datagram carries 183 members, whose records have neither
// a control port nor a token.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "wire/types.h"

namespace cepheus::wire {

enum class MrpType : std::uint8_t {
  kRegister =
      1,  // leader -> switches -> hosts: build the tables, name the members behind each port
  kConfirm =
      2,  // host -> leader: this member takes part (its QP is ready); answers REGISTER and ACTIVATE
  kReject = 3,      // switch or host -> leader: no, with a reason
  kActivate = 4,    // leader -> switches -> hosts: every member has confirmed; data may flow
  kUnregister = 5,  // leader -> switches -> hosts: forget the group
  kRefresh = 6,     // leader -> switches: still alive (ageing)
  kQuery = 7,       // leader -> switches: who holds the group up?
  kReport = 8,      // switch -> leader: its hosts that hold the group up, or whose port went down
  kEvict = 9,       // leader -> switches: these members are gone; the switch they are at CONFIRMs
  kGiveUp = 10,     // leader -> those it names: the group is no more, though they may not know it
  kComplain = 11,   // member -> leader: its sends do not end, or no data comes (kPresence)
  kAlive = 12,      // leader -> those it names, who complained: whoever holds them up is alive
  kHello = 13,      // switch -> the next one: wire/hello.h
  kPublish = 14,    // host -> its switch, which CONFIRMs it: wire/publication.h
  // Of sender groups (wire/sender_group.h), as QUERY, REPORT and REJECT are too:
  kInstall =
      15,  // sender -> switches -> receivers: replicate what is addressed to this virtual QPN
  kInstalled = 16,  // receiver -> sender: INSTALL, or REMOVE, came through
  kRemove = 17,     // sender -> switches -> receivers: forget the group, or those it names
};

// All but HELLO are addressed to the McstID, from host to switch and from switch to switch: one
// rule in a network steers them. The last switch puts in the address of the host, and of the
// process there.
constexpr bool is_for_leader(MrpType type) {
  return type == MrpType::kConfirm || type == MrpType::kReject || type == MrpType::kReport ||
         type == MrpType::kComplain;
}

enum class MrpReject : std::uint8_t {
  kNone = 0,
  kTableFull = 1,
  kNoRoute = 2,
  kIdInUse = 3,  // by another leader, or resting after unregistering
  kMalformed = 4,
  kNotAuthorised = 5,
  kNotMember = 6,     // a host does not know the QP
  kMemberFailed = 7,  // a host could not bring its QP up, or it failed in operation
  kEvicted = 8,  // UNREGISTER: this member alone is out of the group, or the group has lost the
                 // source of a message that not all have
  kVersion = 9,  // of another version, or with a record that must not be skipped
  kTooManyPaths = 10,  // the members need more of a switch's ports than a group may have
  kIncomplete = 11,    // a switch does not know all members behind it: it was restarted meanwhile
  kQuota = 12,         // the leader's host leads as many groups as a switch lets one lead
  kPathLost = 13,  // a trunk that the group goes over is down: the members behind it are cut off
  kRemoteAccess = 14,    // a multicast WRITE that the regions of the member it names do not allow
  kWriteMode = 15,       // the member it names needs another write mode than its switch has
  kNoSenderGroups = 16,  // the switches serve none
};
const char* to_string(MrpReject);  // lower case, for people
const char* to_string(MrpType);

// MrpMember::flags in a REPORT, where the place of the QPN holds how many times the member was
// heard of (feedback packets modulo 2^24): one that answers anything is alive, however slow.
inline constexpr std::uint8_t kMemberDown = 1;    // its port is down
inline constexpr std::uint8_t kMemberSource = 2;  // it is the current turn's source
inline constexpr std::uint8_t kMemberOwes = 4;  // it lags; the source: not all have all of its turn
inline constexpr std::uint8_t kMemberLate =
    8;  // it lags, but answers: no receive is posted, perhaps

struct MrpMember {
  static constexpr std::uint8_t kRecordType = 1;
  static constexpr std::size_t kSize = 16;
  Ipv4 host;
  Qpn qpn;
  std::uint8_t flags = 0;
  // UDP port that its process takes registration datagrams at; 0: the registration port.
  std::uint16_t control_port = 0;
  // In REGISTER and GIVE_UP: a number that the member gave to nobody but its leader.
  std::uint32_t token = 0;

  // A whole record. Empty if `data` does not begin with one.
  static std::optional<MrpMember> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  bool is_same_as(const MrpMember& other) const { return host == other.host && qpn == other.qpn; }
  friend constexpr bool operator==(const MrpMember&, const MrpMember&) = default;
};

struct MrpHeader {
  static constexpr std::size_t kSize = 20;
  static constexpr std::uint8_t kVersion = 2;
  // The switches do not rebase: hosts synchronise their queue pairs' PSNs when the source changes.
  static constexpr std::uint16_t kHostSync = 0x8000;
  // REGISTER: a group without evictions. No switch acknowledges for a dead member.
  static constexpr std::uint16_t kLossEnds = 0x4000;
  // The asker waits for data, and wants to know whether the group stands. In a member's COMPLAIN,
  // which the leader answers with ALIVE of the same flag, or GIVE_UP; in a leader's QUERY: its own
  // switch REPORTs even if it has nothing to say.
  static constexpr std::uint16_t kPresence = 1;

  MrpType type = MrpType::kRegister;
  // ACTIVATE: how many members are behind whoever receives it. REJECT, UNREGISTER, GIVE_UP: the
  // MrpReject; CONFIRM: the MrpType it answers; COMPLAIN, ALIVE,
  // QUERY: kPresence. kHostSync in REGISTER towards hosts, and in what they answer to it. kLossEnds
  // in REGISTER.
  std::uint16_t flags = 0;
  std::uint16_t epoch = 0;
  // Which packet of `total` (REGISTER of a large group). PUBLISH, and CONFIRM of it: its number.
  std::uint16_t seq = 0;
  std::uint16_t total = 1;
  McstId mcst_id;
  std::uint32_t instance = 0;

  // The length is the message's matter: emit() writes that of a header alone.
  static std::optional<MrpHeader> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend constexpr bool operator==(const MrpHeader&, const MrpHeader&) = default;
};

// A whole MRP message of fixed capacity: no allocation.
struct MrpMessage {
  static constexpr std::size_t kMaxDatagram = 1472;  // what an MTU of 1500 leaves of IPv4 and UDP
  static constexpr std::size_t kSignatureSize = 20;
  static constexpr std::size_t kMaxSize = kMaxDatagram - kSignatureSize;
  static constexpr std::size_t kMaxMembers = (kMaxSize - MrpHeader::kSize) / MrpMember::kSize;

  MrpHeader header;
  std::array<MrpMember, kMaxMembers> members;  // the first member_count are valid
  std::size_t member_count = 0;
  // Records of types that may be skipped, as they came: a switch that passes the message on, or a
  // part of it, passes them on as well.
  std::array<std::uint8_t, kMaxSize - MrpHeader::kSize> skipped{};
  std::size_t skipped_size = 0;

  std::span<const MrpMember> list() const { return {members.data(), member_count}; }
  std::span<const std::uint8_t> skipped_records() const { return {skipped.data(), skipped_size}; }
  bool add(const MrpMember& m);  // false if full

  // Empty on a wrong version or length, an unknown type, a record that is malformed or must be
  // known.
  static std::optional<MrpMessage> parse(std::span<const std::uint8_t> data);
  // Skipped records stand behind the members. Bytes written, 0 if `out` is too small.
  std::size_t emit(std::span<std::uint8_t> out) const;
};
static_assert(MrpMessage::kMaxMembers == 89);

// The answer to a REGISTER that parse() refuses because it is of another version, or holds a record
// that must be known and is not: REJECT(kVersion), in the version of the one who asks. Empty if
// `datagram` is none.
using MrpRefusal = std::array<std::uint8_t, MrpHeader::kSize>;
std::optional<MrpRefusal> refuse_version(std::span<const std::uint8_t> datagram);
McstId group_of(const MrpRefusal& refusal);

// On a circle of 16 bits. Bound: 2^15 registrations take longer than a datagram or tombstone lasts.
constexpr bool newer_epoch(std::uint16_t a, std::uint16_t b) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(a - b)) > 0;
}

// The PSN every QP of a group starts at: the same function on hosts and switches, spread over the
// circle and below 0xFF0000, because a fresh QP's stale ACK says 0xFFFFFF (docs/protocol.md).
Psn group_start_psn(McstId id, std::uint16_t epoch);

// The MAC of an IPv4 address on an emulated fabric, host or group:
// locally administered, 02:ce and the four address bytes.
Mac mac_for(Ipv4 address);

}  // namespace cepheus::wire
