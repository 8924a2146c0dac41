// Registration of sender groups, MC-RDMA's multicast (docs/protocol.md, "Sender groups"; MC-RDMA
// III-A, IV-A..C): one fixed sender, with its queue pair connected to one of its receivers by a
// virtual QPN. Messages take the path of the sender's data, addressed to a receiver; switches on
// the way intercept them.
//
// An MRP datagram, MrpHeader::mcst_id being the sender's address, behind it one SENDER record
//   |0|    4    |     8     |     control port      |   UDP port of the sender's process
//   |               addressed to, IPv4              |   destination of its data, where this arrives
//   |     0     |          virtual QPN              |
//   |     0     |           sender's QPN            |
//   |   MTU     |             first PSN             |   path MTU in units of 256 bytes
//   |                    window                     |   packets; 0: no limit is known
//   |                     share                     |
// then a MEMBER record for each receiver (wire/mrp.h), and a REGION record (wire/publication.h) for
// each of their memory regions.
//
// `window`: packets that a source may have under way, as in MrpPath. Each switch that takes an INSTALL
// may lower it, and hosts answer with the number that arrived.
//
// `share` shows without state on the way that every receiver has answered. An INSTALL begins with
// kWholeShare. A switch that passes it on splits its share among the copies. Hosts answer with the
// share that arrived. The sender has all answers when the shares add up to the whole (weight
// throwing: Mattern, "Global quiescence detection based on credit distribution and recovery",
// 1989).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/mrp.h"
#include "wire/publication.h"

namespace cepheus::wire {

// Virtual QPNs: no NIC gives such a number to a real queue pair, and none is InfiniBand's multicast
// QPN.
inline constexpr std::uint32_t kFirstSenderGroupQpn = 0xC00000;
inline constexpr std::uint32_t kLastSenderGroupQpn = 0xFFFFFE;
constexpr bool is_sender_group(Qpn qpn) {
  return qpn.value() >= kFirstSenderGroupQpn && qpn.value() <= kLastSenderGroupQpn;
}
// The first PSN of the sender's data.
inline Psn sender_group_start_psn(Ipv4 sender, Qpn virtual_qpn) {
  return group_start_psn(sender, static_cast<std::uint16_t>(virtual_qpn.value()));
}

struct SenderGroupMessage {
  static constexpr std::size_t kSenderRecord = 32;  // bytes
  static constexpr std::size_t kMaxReceivers = 16;
  static constexpr std::size_t kMaxRegions =
      (MrpMessage::kMaxSize - MrpHeader::kSize - kSenderRecord - kMaxReceivers * MrpMember::kSize) /
      MrpRegion::kSize;
  static constexpr std::uint32_t kMtuUnit = 256;  // bytes
  static constexpr std::uint64_t kWholeShare = std::uint64_t{1} << 62;

  // A region, and its receiver's index in `receivers`.
  struct Region {
    std::uint8_t receiver = 0;
    MrpRegion region;
    friend bool operator==(const Region&, const Region&) = default;
  };

  // mcst_id: the sender's address. seq: the attempt, in INSTALL, REMOVE and their answers. flags:
  // INSTALL: kFresh, kMeasures. INSTALLED: the MrpType it answers. REJECT: the MrpReject. REPORT: none.
  MrpHeader header;
  // INSTALL: the sender has sent no data yet, so each receiver waits for `start`.
  static constexpr std::uint16_t kFresh = 1;
  // INSTALL: the path MTU is not known yet. Switches lower it to that of their ports, receivers answer
  // without connecting.
  static constexpr std::uint16_t kMeasures = 2;

  std::uint16_t control_port = 0;
  Ipv4 addressed;
  Qpn virtual_qpn;  // is_sender_group()
  Qpn sender_qpn;
  Psn start;
  std::uint32_t window = 0;
  std::uint16_t path_mtu = 0;  // payload bytes of a packet, in whole units; 0: no limit is known
  std::uint64_t share = 0;
  std::array<MrpMember, kMaxReceivers>
      receivers;  // the first receiver_count are valid, no host twice
  std::size_t receiver_count = 0;
  std::array<Region, kMaxRegions> regions;  // the first region_count are valid
  std::size_t region_count = 0;

  Ipv4 sender() const { return header.mcst_id; }
  std::span<const MrpMember> list() const { return {receivers.data(), receiver_count}; }
  std::span<const Region> region_list() const { return {regions.data(), region_count}; }
  bool add(const MrpMember& receiver);                             // false if full
  bool add_region(std::size_t receiver, const MrpRegion& region);  // false if full
  // With its regions. Later receivers move up by one place.
  void remove(std::size_t receiver);

  // Empty for other messages and malformed ones: no virtual QPN, a receiver twice, a region without
  // a receiver.
  static std::optional<SenderGroupMessage> parse(std::span<const std::uint8_t> data);
  std::size_t emit(std::span<std::uint8_t> out) const;  // bytes written, 0 if `out` is too small
};
static_assert(SenderGroupMessage::kMaxRegions == 40);

}  // namespace cepheus::wire
