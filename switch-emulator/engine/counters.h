// Named counters of a switch and of each of its ports: copies out = delivered + dropped by a named
// reason.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "wire/types.h"

namespace cepheus::fabric {

enum class Counter : std::size_t {
  kRxPackets,
  kRxBytes,
  kTxPackets,  // emitted by the engine, links' and rings' drops not yet taken off
  kTxBytes,
  kUnicastForwarded,
  kDataCopies,        // group data packets emitted
  kFeedbackAbsorbed,  // merged into later feedback
  kFeedbackToSource,
  kMrpRegister,
  kMrpConfirm,
  kMrpReject,
  kMrpActivate,
  kMrpUnregister,
  kMrpRefresh,
  kMrpQuery,
  kMrpReport,  // sent to leaders
  kMrpEvict,
  kMrpGiveUp,
  kMrpComplain,
  kMrpAlive,
  kHello,         // from the switches next to this one
  kTrunkDark,     // trunks that went down: cut, or silent
  kPathsEvicted,  // members that left in operation
  kTurns,         // sources admitted
  kGateHeld,      // first packets of a newcomer kept until the gate opened
  kGateRnr,       // ... answered RNR
  kGateGaveUp,    // ... told an error, since the turn before its own can't end
  kHandoverRnr,   // a last source has not synchronised its PSNs: RNR to the new one
  kNewcomerNak,   // a newcomer's first packet was lost: NAK for it
  kLostAggregateAnswered,
  kOldDuplicateAnswered,
  kCnpToSource,
  kStaleTableAged,
  // Drops.
  kDropMalformed,
  kDropSpoofedSource,  // a host port sent another address than its own
  kDropNoRoute,
  kDropTooLong,  // longer than the egress port's MTU
  kDropUnknownGroup,
  kDropNotActive,          // group data before ACTIVATE
  kDropTombstone,          // group that was unregistered a short while ago
  kDropNotMember,          // from a port that is no path of the group
  kDropNotMulticastable,   // READ or atomic to a group: answered NAK invalid request
  kDropDataWindow,         // data PSN far beyond `sent`
  kDropConflict,           // a turn that no rule admits
  kDropFeedbackNoSource,   // feedback while nobody has sent
  kDropFeedbackStale,      // outside (ack, sent]
  kDropFeedbackOtherTurn,  // tagged with another turn
  kDropMrpStale,           // older epoch, or for a tombstone
  kDropMrpForeign,  // control of a group by another leader, or from another port than its leader's
  kDropMrpForged,   // from a host, and about others than itself, or what only switches say
  kDropMrpUnauthenticated,  // the fabric has a key: not signed, or not with it
  kDropFeedbackUnsent,      // acknowledges what was never sent
  kDropCorrupt,             // group packet whose ICRC is wrong
  kDropTtl,                 // time to live used up: a routing loop
  kDropGateAnswered,  // a newcomer's packet behind one that the gate holds or has answered RNR
  kDropOther,
  kCount
};
std::string_view name(Counter);  // "drop_spoofed_source"

class Counters {
 public:
  explicit Counters(std::size_t ports = 0) : per_port_(ports) {}
  void add(wire::PortId port, Counter c, std::uint64_t n = 1) {
    total_[static_cast<std::size_t>(c)] += n;
    if (port.value() < per_port_.size()) per_port_[port.value()][static_cast<std::size_t>(c)] += n;
  }
  std::uint64_t operator[](Counter c) const { return total_[static_cast<std::size_t>(c)]; }
  std::uint64_t of(wire::PortId port, Counter c) const {
    return per_port_[port.value()][static_cast<std::size_t>(c)];
  }

 private:
  using Array = std::array<std::uint64_t, static_cast<std::size_t>(Counter::kCount)>;
  Array total_{};
  std::vector<Array> per_port_;
};

}  // namespace cepheus::fabric
