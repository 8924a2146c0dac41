// MFT registration protocol, version 3 (paper III-C): UDP datagrams between leader, switches and
// hosts.
//
//   |  version  |   type    |        flags          |
//   |         epoch         |          seq          |
//   |         total         |        length         |   of header and records, bytes
//   |                    McstID                     |
//   |                leader instance                |   20 bytes, the same in every version
//   then records of whole 32-bit words, this word among them:
//   |o|  type   |   words   |          ...          |   o: may be skipped if the type is unknown
//   MEMBER, 16 bytes:
//   |0|    1    |     4     |     control port      |
//   |                     IPv4                      |
//   |  flags    |               QPN                 |
//   |                     token                     |
//   PATH, 8 bytes, at most once:
//   |1|    5    |     2     |       path MTU        |   payload bytes; 0: no limit is known
//   |                window, packets                |   0: no limit is known
//   REDUCTION, 8 bytes, at most once, in REGISTER alone:
//   |0|    8    |     2     |   kind    |   flags   |
//   |     unit, bytes       |    window, units      |
//   TREE, 16 bytes, at most once, in CONFIRM, CONNECT and ACTIVATE, sent by switches alone:
//   |0|    9    |     4     |  height   |   flags   |
//   |               lowest IPv4 address             |   of the members at the sender's side
//   |              highest IPv4 address             |
//   |                    members                    |   ... their number
//   REGION, 28 bytes, in PUBLISH alone: wire/publication.h
//
// The instance tells apart two leader processes on one host; a leader's identity is (source IP,
// instance). With an MTU of 1500 a datagram carries 89 members and a signature (mrp_key.h).
// Unsigned datagrams leave room for a signature too. The paper's datagram carries 183 members, with
// neither a control port nor a token.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>

#include "wire/types.h"

namespace cepheus::wire {

enum class MrpType : std::uint8_t {
  kRegister = 1,    // leader -> switches -> hosts: build the tables, with members by port
  kConfirm = 2,     // host -> leader: answers REGISTER, CONNECT and ACTIVATE of this member
  kReject = 3,      // switch or host -> leader: refusal, with a reason
  kActivate = 4,    // leader -> switches -> hosts: every member is connected; data may flow
  kUnregister = 5,  // leader -> switches -> hosts: delete the group
  kRefresh = 6,     // leader -> switches: still alive (ageing)
  kQuery = 7,       // leader -> switches: request for a REPORT of the lagging members
  kReport = 8,      // switch -> leader: its hosts that lag or have a port down
  kEvict = 9,       // leader -> switches: evict these members; the switch they are at CONFIRMs
  kGiveUp = 10,  // leader -> the members it names: the group has ended, even if they do not know it
  kComplain = 11,  // member -> leader: its sends do not complete, or no data comes (kPresence)
  kAlive = 12,     // leader -> the members it names, which complained: they need not give up
  kHello = 13,     // switch -> the next one: wire/hello.h
  kPublish = 14,   // host -> its switch, which CONFIRMs it: wire/publication.h
  // Of sender groups (wire/sender_group.h), which use QUERY, REPORT and REJECT too:
  kInstall = 15,    // sender -> switches -> receivers: replicate data for this virtual QPN
  kInstalled = 16,  // receiver -> sender: INSTALL, or REMOVE, has arrived
  kRemove = 17,     // sender -> switches -> receivers: delete the group, or the receivers it names
  kProbe = 18,      // host -> its switch, which answers PROBED with what arrived: wire/probe.h
  kProbed = 19,
  kConnect = 20,  // leader -> switches -> hosts: connect the queue pair with this path MTU
};

// All but HELLO are addressed to the McstID, from host to switch and from switch to switch, so that
// one rule steers them through a network. The last switch sets the address of the host and the port
// of its process.
constexpr bool is_for_leader(MrpType type) {
  return type == MrpType::kConfirm || type == MrpType::kReject || type == MrpType::kReport ||
         type == MrpType::kComplain;
}

enum class MrpReject : std::uint8_t {
  kNone = 0,
  kTableFull = 1,
  kNoRoute = 2,
  kIdInUse = 3,  // used by another leader, or still a tombstone
  kMalformed = 4,
  kNotAuthorised = 5,
  kNotMember = 6,     // the host does not know the QP
  kMemberFailed = 7,  // the host could not set up its QP, or the QP failed in operation
  // UNREGISTER: this member alone is out of the group, or the group has lost the source of a
  // message that not all have.
  kEvicted = 8,
  kVersion = 9,          // of another version, or with an unknown record that must not be skipped
  kTooManyPaths = 10,    // the members are behind more ports of a switch than a group may have
  kIncomplete = 11,      // a switch does not know all members behind it: it has restarted
  kQuota = 12,           // the leader's host already leads as many groups as the switch allows
  kPathLost = 13,        // a trunk of the group's tree is down: the members behind it are cut off
  kRemoteAccess = 14,    // a multicast WRITE that the regions of the named member do not allow
  kWriteMode = 15,       // the named member needs another write mode than its switch has
  kNoSenderGroups = 16,  // the switches serve no sender groups
  kTooLong = 17,         // a packet of the group does not fit through a port on the way; with PATH
  kNoMemory = 18,        // the switch has no memory left for another reduction group
  kNotServed = 19,       // a kind of reduction group that the switch does not serve
  // Two members have contributed different things to one unit: it names both members. There a
  // record's `flags` are the operation and type (wire/reduction.h), and `token` the bytes.
  kMismatch = 20,
  kResultRefused = 21,  // the named member's NIC has refused a result
  // The named member has contributed to an operation that its switch does not serve, or has divided
  // a value. Its record is as those of kMismatch.
  kOperation = 22,
};
const char* to_string(MrpReject);  // lower case, for people
const char* to_string(MrpType);

// MrpMember::flags in a REPORT. There the QPN's place holds a count of the member's feedback
// packets, modulo 2^24. A member that answers anything is alive, however slow.
inline constexpr std::uint8_t kMemberDown = 1;    // its port is down
inline constexpr std::uint8_t kMemberSource = 2;  // it is the current turn's source
// It lags; the source: not all members have all of its turn.
inline constexpr std::uint8_t kMemberOwes = 4;
inline constexpr std::uint8_t kMemberLate =
    8;  // it lags, but answers: perhaps it has no receive posted

struct MrpMember {
  static constexpr std::uint8_t kRecordType = 1;
  static constexpr std::size_t kSize = 16;
  Ipv4 host;
  Qpn qpn;
  std::uint8_t flags = 0;
  // UDP port of its process for registration datagrams; 0: the registration port.
  std::uint16_t control_port = 0;
  // In REGISTER and GIVE_UP: a number that the member gave only to its leader.
  std::uint32_t token = 0;

  // A whole record. Empty if `data` does not begin with one.
  static std::optional<MrpMember> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  bool is_same_as(const MrpMember& other) const { return host == other.host && qpn == other.qpn; }
  friend constexpr bool operator==(const MrpMember&, const MrpMember&) = default;
};

// What a way of a group can take, as far as it is known: the least of the nodes that the record has
// passed (docs/protocol.md, "What a way can take"). 0: no limit is known.
struct MrpPath {
  static constexpr std::uint8_t kRecordType = 0x85;  // 5, optional
  static constexpr std::size_t kSize = 8;
  // Larger windows limit nothing: switches drop data further beyond the slowest receiver.
  static constexpr std::uint32_t kWidestWindow = 1u << 22;
  std::uint16_t mtu = 0;     // payload bytes of a packet
  std::uint32_t window = 0;  // packets that the group's source may have under way

  // The smaller limit of each kind.
  constexpr void narrow(const MrpPath& other) {
    mtu = least_known(mtu, other.mtu);
    window = least_known(window, other.window);
  }
  // The MTU becomes one that queue pairs know: the largest that fits, or the least of all. A limit
  // that none fits must not become 0, which is no limit.
  constexpr void round_mtu() {
    if (mtu != 0) mtu = std::max<std::uint16_t>(path_mtu_within(mtu), 256);
  }
  // A whole record. Empty if `data` does not begin with one.
  static std::optional<MrpPath> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend constexpr bool operator==(const MrpPath&, const MrpPath&) = default;
};

// A reduction group (docs/protocol.md, "Reductions"). A switch or member that does not know the
// record refuses the REGISTER.
struct MrpReduction {
  static constexpr std::uint8_t kRecordType = 8;
  static constexpr std::size_t kSize = 8;
  static constexpr std::uint16_t kMostUnit = 4096, kMostWindow = 256;
  static constexpr std::uint16_t kUnitStep = 8;  // the longest value: no packet divides one
  // Barriers, and all operations but sums and products of floating-point numbers. Kind 1 was of
  // plain bytes alone: a switch that knows only that one refuses this one.
  static constexpr std::uint8_t kValues = 2;
  // Those, too: each slot has the partial sums of pairs.
  static constexpr std::uint8_t kOrdered = 3;
  std::uint8_t kind = kValues;
  // Payload bytes of a packet at most, a multiple of kUnitStep; the path MTU may be less.
  std::uint16_t unit = 0;
  std::uint16_t window = 0;  // units that a member may have under way: a power of two
  // The members' addresses ascend in the order of the leader's list. Flag 1; others are 0.
  bool ascends = false;

  bool has_known_kind() const { return kind == kValues || kind == kOrdered; }
  bool is_valid() const {
    return unit > 0 && unit % kUnitStep == 0 && unit <= kMostUnit && window <= kMostWindow &&
           std::has_single_bit(window);
  }
  // A whole record. Empty if `data` does not begin with one, or it has other flags.
  static std::optional<MrpReduction> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend constexpr bool operator==(const MrpReduction&, const MrpReduction&) = default;
};

// The members of a reduction group at the side of the switch that sends it: behind that switch in a
// CONFIRM, and all others in a CONNECT or ACTIVATE (docs/protocol.md, "The root of a reduction"). To
// a host: all members.
struct MrpTree {
  static constexpr std::uint8_t kRecordType = 9;
  static constexpr std::size_t kSize = 16;
  // The members at this side are combined in pairs by their addresses.
  static constexpr std::uint8_t kSideIsFlat = 1;
  // The root has found that all members are. Known at the sender's side.
  static constexpr std::uint8_t kGroupIsFlat = 2;
  std::uint8_t height = 0;    // links from the sender to the farthest of them; at least 1
  std::uint8_t flags = 0;     // others are sent as 0, and ignored
  Ipv4 lowest, highest;       // the first and the last of them by address
  std::uint32_t members = 0;  // at least 1

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  // Both sides together, without flags.
  void add(const MrpTree& other);
  // A whole record. Empty if `data` does not begin with one, or it has no member.
  static std::optional<MrpTree> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend constexpr bool operator==(const MrpTree&, const MrpTree&) = default;
};

struct MrpHeader {
  static constexpr std::size_t kSize = 20;
  static constexpr std::uint8_t kVersion = 3;
  // The switches do not rebase: hosts set their queue pairs' PSNs when the source changes.
  static constexpr std::uint16_t kHostSync = 0x8000;
  // REGISTER: a group without evictions. No switch acknowledges for a dead member.
  static constexpr std::uint16_t kLossEnds = 0x4000;
  // The sender waits for data, and wants to know whether the group still exists. In a member's
  // COMPLAIN, which the leader answers with ALIVE and the same flag, or with GIVE_UP. In a leader's
  // QUERY: its own switch REPORTs even if nothing lags.
  static constexpr std::uint16_t kPresence = 1;

  MrpType type = MrpType::kRegister;
  // CONNECT, ACTIVATE: number of members behind the recipient. REJECT, UNREGISTER, GIVE_UP: the
  // MrpReject. CONFIRM: the MrpType it answers. COMPLAIN, ALIVE, QUERY: kPresence. kHostSync in
  // REGISTER towards hosts, and in their answers. kLossEnds in REGISTER.
  std::uint16_t flags = 0;
  std::uint16_t epoch = 0;
  // Number of this packet among `total` (REGISTER of a large group). PUBLISH, and its CONFIRM: the
  // publication's number.
  std::uint16_t seq = 0;
  std::uint16_t total = 1;
  McstId mcst_id;
  std::uint32_t instance = 0;

  // Of a message of any version. Empty if it is too short, or its type is unknown.
  static std::optional<MrpType> type_of(std::span<const std::uint8_t> data);
  // emit() writes the length of a header alone; the message's emit() sets its own.
  static std::optional<MrpHeader> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend constexpr bool operator==(const MrpHeader&, const MrpHeader&) = default;
};

// A whole MRP message of fixed capacity, without allocation.
struct MrpMessage {
  static constexpr std::size_t kMaxDatagram = 1472;  // an MTU of 1500 without IPv4 and UDP headers
  static constexpr std::size_t kSignatureSize = 20;
  static constexpr std::size_t kMaxSize = kMaxDatagram - kSignatureSize;
  static constexpr std::size_t kMaxMembers = (kMaxSize - MrpHeader::kSize) / MrpMember::kSize;
  // ... beside PATH, and REDUCTION or TREE.
  static constexpr std::size_t kMaxWithReduction = kMaxMembers - 1;

  MrpHeader header;
  std::array<MrpMember, kMaxMembers> members;  // the first member_count are valid
  std::size_t member_count = 0;
  std::optional<MrpPath> path;
  std::optional<MrpReduction> reduction;
  std::optional<MrpTree> tree;
  // Records of optional types, unparsed: a switch that passes on the message, or a part of it,
  // passes these on too.
  std::array<std::uint8_t, kMaxSize - MrpHeader::kSize> skipped{};
  std::size_t skipped_size = 0;

  std::span<const MrpMember> list() const { return {members.data(), member_count}; }
  std::span<const std::uint8_t> skipped_records() const { return {skipped.data(), skipped_size}; }
  bool add(const MrpMember& m);  // false if full
  // The limits in PATH become at most those of `other`.
  void narrow(const MrpPath& other) {
    if (!path) path.emplace();
    path->narrow(other);
  }

  // Whether a TREE fits beside the members and skipped records.
  bool has_space_for_tree() const {
    const std::size_t others = size_without_path() - (tree ? MrpTree::kSize : 0);
    return others + MrpTree::kSize + (path ? MrpPath::kSize : 0) <= kMaxSize;
  }

  // Empty on a wrong version or length, an unknown type, a malformed record, or an unknown one that
  // must not be skipped.
  static std::optional<MrpMessage> parse(std::span<const std::uint8_t> data);
  // REDUCTION, TREE, PATH and skipped records follow the members. PATH is left out if the others have
  // taken its place. Bytes written, 0 if `out` is too small.
  std::size_t emit(std::span<std::uint8_t> out) const;

 private:
  std::size_t size_without_path() const;
};
static_assert(MrpMessage::kMaxMembers == 89);
static_assert(MrpHeader::kSize + MrpMessage::kMaxMembers * MrpMember::kSize + MrpPath::kSize <=
              MrpMessage::kMaxSize);
static_assert(MrpHeader::kSize + MrpMessage::kMaxWithReduction * MrpMember::kSize + MrpPath::kSize +
                  std::max(MrpReduction::kSize, MrpTree::kSize) <=
              MrpMessage::kMaxSize);

// The answer to a REGISTER that parse() refuses for its version, or for an unknown record that must
// not be skipped: REJECT(kVersion), in the version of the REGISTER. Empty if `datagram` is no
// REGISTER.
using MrpRefusal = std::array<std::uint8_t, MrpHeader::kSize>;
std::optional<MrpRefusal> refuse_version(std::span<const std::uint8_t> datagram);
McstId group_of(const MrpRefusal& refusal);

// On a circle of 16 bits. Bound: 2^15 registrations take longer than a datagram or tombstone lasts.
constexpr bool newer_epoch(std::uint16_t a, std::uint16_t b) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(a - b)) > 0;
}

// First PSN of every QP of a group: the same function on hosts and switches, spread over the circle
// and below 0xFF0000, because a fresh QP's stale ACK has 0xFFFFFF (docs/protocol.md).
Psn group_start_psn(McstId id, std::uint16_t epoch);

// The MAC of an IPv4 address on an emulated fabric, host or group:
// locally administered, 02:ce and the four address bytes.
Mac mac_for(Ipv4 address);

}  // namespace cepheus::wire
