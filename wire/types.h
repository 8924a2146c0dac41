// The names of things on the wire, each with its own type, in host byte order.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cepheus::wire {

// Packet sequence number: 24 bits on a circle (IBTA vol. 1, 9.7.2). It has no operator<, because
// callers must name the comparison.
class Psn {
 public:
  static constexpr std::uint32_t kMask = 0xFFFFFF;

  constexpr Psn() = default;
  explicit constexpr Psn(std::uint32_t value) : value_(value & kMask) {}
  constexpr std::uint32_t value() const { return value_; }

  // Signed steps from `from` to `to`, in [-2^23, 2^23). Callers state the bound that keeps both
  // that near.
  friend constexpr std::int32_t distance(Psn from, Psn to) {
    const std::uint32_t d = (to.value_ - from.value_) & kMask;
    return d < (1u << 23) ? static_cast<std::int32_t>(d) : static_cast<std::int32_t>(d) - (1 << 24);
  }
  friend constexpr bool after(Psn a, Psn b) { return distance(b, a) > 0; }
  friend constexpr bool before(Psn a, Psn b) { return distance(b, a) < 0; }
  friend constexpr Psn operator+(Psn p, std::int64_t n) {
    return Psn(static_cast<std::uint32_t>(p.value_ + static_cast<std::uint64_t>(n)));
  }
  friend constexpr Psn operator-(Psn p, std::int64_t n) { return p + (-n); }
  friend constexpr bool operator==(Psn, Psn) = default;

 private:
  std::uint32_t value_ = 0;
};
static_assert(distance(Psn(0xFFFFFF), Psn(1)) == 2);
static_assert(Psn(0) - 1 == Psn(0xFFFFFF));

// Queue pair number: 24 bits.
class Qpn {
 public:
  constexpr Qpn() = default;
  explicit constexpr Qpn(std::uint32_t value) : value_(value & 0xFFFFFF) {}
  constexpr std::uint32_t value() const { return value_; }
  friend constexpr auto operator<=>(Qpn, Qpn) = default;

 private:
  std::uint32_t value_ = 0;
};
inline constexpr Qpn kVirtualQpn{1};  // the remote end of every group connection (paper III-A)

// IPv4 address in host byte order: 10.0.0.1 is 0x0A000001.
class Ipv4 {
 public:
  constexpr Ipv4() = default;
  explicit constexpr Ipv4(std::uint32_t value) : value_(value) {}
  constexpr Ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d)
      : value_(std::uint32_t{a} << 24 | std::uint32_t{b} << 16 | std::uint32_t{c} << 8 | d) {}
  constexpr std::uint32_t value() const { return value_; }
  // Hosts treat the others specially: 0/8, 127/8, 224/3.
  constexpr bool is_unicast() const {
    const std::uint32_t first_octet = value_ >> 24;
    return first_octet != 0 && first_octet != 127 && first_octet < 224;
  }
  constexpr bool is_unset() const { return value_ == 0; }
  std::string to_string() const;
  static std::optional<Ipv4> parse(std::string_view dotted);
  friend constexpr auto operator<=>(Ipv4, Ipv4) = default;

 private:
  std::uint32_t value_ = 0;
};

// Multicast group identifier: an IPv4 destination (from the unicast range) on the wire (paper
// III-A).
using McstId = Ipv4;

// A CIDR block, for example the McstID pool 198.18.0.0/15.
struct Ipv4Prefix {
  Ipv4 base;
  int length = 32;  // leading one bits of the mask
  constexpr std::uint32_t mask() const {
    return length == 0 ? 0u : ~std::uint32_t{0} << (32 - length);
  }
  constexpr bool contains(Ipv4 a) const { return ((a.value() ^ base.value()) & mask()) == 0; }
  constexpr std::uint64_t size() const { return std::uint64_t{1} << (32 - length); }
  constexpr bool is_unicast() const {  // its first and its last address
    return base.is_unicast() && Ipv4(base.value() | ~mask()).is_unicast();
  }
  std::string to_string() const;  // "198.18.0.0/15"
  static std::optional<Ipv4Prefix> parse(std::string_view cidr);
};
inline constexpr Ipv4Prefix kDefaultMcstPool{Ipv4(198, 18, 0, 0), 15};

struct Mac {
  std::array<std::uint8_t, 6> octets{};
  std::string to_string() const;
  // An address of one machine: neither a group's nor all zeros.
  constexpr bool is_unicast() const { return (octets[0] & 1) == 0 && *this != Mac{}; }
  friend constexpr auto operator<=>(const Mac&, const Mac&) = default;
};

// Index of a port of one switch, from 0.
class PortId {
 public:
  constexpr PortId() = default;
  explicit constexpr PortId(std::uint16_t value) : value_(value) {}
  constexpr std::uint16_t value() const { return value_; }
  friend constexpr auto operator<=>(PortId, PortId) = default;

 private:
  std::uint16_t value_ = 0xFFFF;
};

using Bytes = std::uint64_t;

struct BitRate {
  std::uint64_t bits_per_second = 0;  // 0: unlimited
  constexpr bool is_unlimited() const { return bits_per_second == 0; }
  constexpr std::chrono::nanoseconds time_for(Bytes n) const {
    if (is_unlimited()) return std::chrono::nanoseconds{0};
    return std::chrono::nanoseconds{static_cast<std::int64_t>(
        static_cast<unsigned __int128>(n) * 8 * 1'000'000'000u / bits_per_second)};
  }
};

// Time in engines is an argument, never a clock. Live drivers pass CLOCK_MONOTONIC, the simulator
// its own time.
struct EngineClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<EngineClock>;
  static constexpr bool is_steady = true;
};
using Duration = std::chrono::nanoseconds;
using Instant = EngineClock::time_point;
inline constexpr Instant kNever = Instant::max();

// The smaller of two limits; 0: not known.
template <typename T>
constexpr T least_known(T a, T b) {
  return a == 0 || (b != 0 && b < a) ? b : a;
}

// Path MTU: payload bytes in one packet (IBTA 9.2: 256, 512, 1024, 2048, 4096).
constexpr bool is_path_mtu(std::uint32_t n) {
  return n == 256 || n == 512 || n == 1024 || n == 2048 || n == 4096;
}

// Bytes around the payload of the longest data packet, Ethernet header to ICRC: of a WRITE with
// immediate.
inline constexpr std::uint32_t kDataOverhead = 78;
// The largest path MTU of at most `bytes`; 0: there is none.
constexpr std::uint16_t path_mtu_within(std::uint32_t bytes) {
  for (const std::uint16_t mtu : {4096, 2048, 1024, 512, 256}) {
    if (mtu <= bytes) return mtu;
  }
  return 0;
}

inline constexpr std::uint16_t kRoceUdpPort = 4791;
inline constexpr std::uint16_t kDefaultMrpUdpPort = 18516;

}  // namespace cepheus::wire

template <>
struct std::hash<cepheus::wire::Ipv4> {
  std::size_t operator()(cepheus::wire::Ipv4 a) const noexcept {
    return std::hash<std::uint64_t>()(a.value() * 0x9E3779B97F4A7C15ull);
  }
};
template <>
struct std::hash<cepheus::wire::Qpn> {
  std::size_t operator()(cepheus::wire::Qpn q) const noexcept {
    return std::hash<std::uint64_t>()(q.value() * 0x9E3779B97F4A7C15ull);
  }
};
