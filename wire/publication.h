// PUBLISH: the memory regions of one member that a multicast WRITE may name (docs/protocol.md,
// "Multicast WRITE"). The host sends it to its own switch, which keeps the regions and does not
// pass them on. The switch answers CONFIRM(PUBLISH) with the same number.
//
// An MRP datagram to the McstID: behind MrpHeader the MEMBER that sends it, then one record for
// each region:
//   |0|    2    |     7     |        region         |   number, as a WRITE's rkey names it
//   |                     IPv4                      |   the member's
//   |               virtual address                 |
//   |                                               |
//   |                    length                     |   bytes
//   |                                               |
//   |                     rkey                      |
// It names all current regions: a region that is not named is revoked. MrpHeader::seq numbers a
// member's publications, circularly; an older one never replaces a newer one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/mrp.h"

namespace cepheus::wire {

struct MrpRegion {
  static constexpr std::uint8_t kRecordType = 2;
  static constexpr std::size_t kSize = 28;

  std::uint16_t number = 0;
  std::uint32_t rkey = 0;  // the NIC's
  std::uint64_t virtual_address = 0;
  std::uint64_t length = 0;  // virtual_address + length does not pass 2^64

  // A whole record, and its member. Empty if `data` does not begin with one.
  struct Record;
  static std::optional<Record> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out, Ipv4 host) const;
  friend constexpr bool operator==(const MrpRegion&, const MrpRegion&) = default;
};

struct MrpRegion::Record {
  Ipv4 host;
  MrpRegion region;
};

struct Publication {
  // MrpHeader::flags: WRITEs to this member are announced one by one, and its switch must support
  // that.
  static constexpr std::uint16_t kAnnounced = 1;
  static constexpr std::size_t kMaxRegions =
      (MrpMessage::kMaxSize - MrpHeader::kSize - MrpMember::kSize) / MrpRegion::kSize;

  MrpHeader header;  // of type PUBLISH
  MrpMember member;
  std::array<MrpRegion, kMaxRegions> regions;  // the first `count` are valid, by rising number
  std::size_t count = 0;

  std::span<const MrpRegion> list() const { return {regions.data(), count}; }
  // Empty for other messages and malformed ones: a region twice, of another host, or past the end
  // of the address space.
  static std::optional<Publication> parse(std::span<const std::uint8_t> data);
  std::size_t emit(std::span<std::uint8_t> out) const;  // bytes written, 0 if `out` is too small
};
static_assert(Publication::kMaxRegions == 50);

}  // namespace cepheus::wire
