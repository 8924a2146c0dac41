// Named counters of a NIC: every packet that is not delivered has one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cepheus::rnic {

enum class Counter : std::size_t {
  kTxPackets,
  kTxBytes,          // headers, payload and ICRC
  kTxRetransmitted,  // packets sent again
  kRxPackets,
  kRxBytes,
  kRxDropMalformed,  // not a RoCEv2 packet, or lengths that do not add up
  kRxDropIcrc,
  kRxDropNotMine,  // destination address is another host's
  kRxDropUnknownQp,
  kRxDropQpState,      // QP can't receive in its state
  kRxDropWrongSource,  // source address is not the QP's remote end
  kRxDropPkey,
  kRxDropQkey,          // UD: not the QP's queue key
  kRxDropNoReceive,     // UC, UD: no receive was posted
  kRxDropLength,        // UC, UD: message does not fit its receive, or lengths that do not add up
  kRxDropAccess,        // UC: write to memory that its key does not open
  kRxDropIncomplete,    // UC: part of a message of which other packets are lost
  kRxDropUnsupported,   // opcode of a service that this QP does not give
  kRxDropStaleAck,      // ACK outside the requester's window
  kRxDropStaleRequest,  // READ or atomic asked again that can't be answered any more
  kRxDuplicate,         // request seen before: acknowledged again
  kRxOutOfSequence,
  kTxReadResponse,
  kTxAtomicAck,
  kTxAck,
  kTxNakSequence,
  kTxNakFatal,
  kTxRnrNak,
  kRxReadResponse,
  kRxAtomicAck,
  kRxMissingResult,  // a later response told that a READ's or atomic's was lost
  kRxAck,
  kRxNakSequence,
  kRxNakFatal,
  kRxRnrNak,
  kRxCnp,
  kAckTimeouts,
  kRetriesExceeded,
  kRnrRetriesExceeded,
  kCount
};
std::string_view name(Counter);  // "rx_drop_icrc"

class Counters {
 public:
  void add(Counter c, std::uint64_t n = 1) { values_[static_cast<std::size_t>(c)] += n; }
  std::uint64_t operator[](Counter c) const { return values_[static_cast<std::size_t>(c)]; }

 private:
  std::array<std::uint64_t, static_cast<std::size_t>(Counter::kCount)> values_{};
};

}  // namespace cepheus::rnic
