// An announcement of a WRITE: the address, key and length at each member, for sources that choose
// them anew for every WRITE (docs/protocol.md, "Multicast WRITE": per-request).
//
// It is the payload of an RDMA WRITE Only to the group, under a key of its own. Switches read it;
// members' NICs get a WRITE without data in its place.
//   |     members     |       0       |
//   |              IPv4               |   then for each member
//   |              rkey               |
//   |        virtual address          |
//   |                                 |
//   |             length              |   writable bytes from there on
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

// An announcement's payload, read in place.
class Announcement {
 public:
  // rkey of the WRITE that carries it. No region has it, because region numbers have 16 bits.
  static constexpr std::uint32_t kKey = 0xFFFFFFFF;
  // rkey of an announced WRITE until a switch replaces it. No NIC gives it to memory.
  static constexpr std::uint32_t kNoKey = 0;

  // A switch keeps at most this many unacknowledged announcements of each member.
  static constexpr std::size_t kMostUnderWay = 64;

  static constexpr std::size_t size_of(std::size_t members) {
    return kHeaderSize + members * AnnouncedTarget::kSize;
  }
  // Members in one packet with `mtu` bytes of payload.
  static constexpr std::size_t most_members(std::size_t mtu) {
    return (mtu - kHeaderSize) / AnnouncedTarget::kSize;
  }
  // Empty unless its length fits the number of members that it names.
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
