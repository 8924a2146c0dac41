// An announcement: where the WRITE behind it goes at each member, where a source says so anew for
// every one (docs/protocol.md, "Multicast WRITE": per-request).
//
// The payload of an RDMA WRITE Only to the group, under a key of its own. Switches read it; members'
// NICs see a WRITE without data in its place.
//   |     members     |       0       |
//   |              IPv4               |   then of each member
//   |              rkey               |
//   |        virtual address          |
//   |                                 |
//   |             length              |   bytes from there on that may be written
//   |                                 |
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/types.h"

namespace cepheus::wire {

struct AnnouncedTarget {
  static constexpr std::size_t kSize = 24;

  Ipv4 host;  // the member's
  std::uint32_t rkey = 0;
  std::uint64_t virtual_address = 0;
  std::uint64_t length = 0;  // virtual_address + length does not pass 2^64

  friend constexpr bool operator==(const AnnouncedTarget&, const AnnouncedTarget&) = default;
};

// A payload that is one, read where it lies.
class Announcement {
 public:
  // Of the WRITE that carries it; regions have numbers of 16 bits, so it is none of theirs.
  static constexpr std::uint32_t kKey = 0xFFFFFFFF;
  // What no NIC gives to memory: of a WRITE that was announced, until a switch puts in another.
  static constexpr std::uint32_t kNoKey = 0;

  // A switch keeps so many of each member that have not been acknowledged.
  static constexpr std::size_t kMostUnderWay = 64;

  static constexpr std::size_t size_of(std::size_t members) {
    return kHeaderSize + members * AnnouncedTarget::kSize;
  }
  // Of one packet with `mtu` bytes of payload.
  static constexpr std::size_t most_members(std::size_t mtu) {
    return (mtu - kHeaderSize) / AnnouncedTarget::kSize;
  }
  // Empty unless its length is that of the members that it names.
  static std::optional<Announcement> parse(std::span<const std::uint8_t> payload);
  // Bytes written, 0 if `out` is too small or there are too many.
  static std::size_t emit(std::span<const AnnouncedTarget> targets, std::span<std::uint8_t> out);

  std::size_t count() const { return records_.size() / AnnouncedTarget::kSize; }
  AnnouncedTarget operator[](std::size_t i) const;
  // Of the member at `host`; none if it is not named, or its target passes the end of the address
  // space.
  std::optional<AnnouncedTarget> find(Ipv4 host) const;

 private:
  static constexpr std::size_t kHeaderSize = 4;

  explicit Announcement(std::span<const std::uint8_t> records) : records_(records) {}

  std::span<const std::uint8_t> records_;
};
static_assert(Announcement::most_members(1024) == 42 && Announcement::most_members(4096) == 170);

}  // namespace cepheus::wire
