// Values of a replicated volume: epochs, members, configurations, chunks (docs/replica.md).
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <tuple>

#include "wire/types.h"

namespace cepheus::replica {

using wire::Duration;
using wire::Instant;

inline constexpr unsigned kMostReplicas = 16;

// A writer's claim to the volume: a later one fences all earlier ones. `writer` is random, so that
// two writers with the same number differ.
struct Epoch {
  std::uint64_t number = 0;
  std::uint64_t writer = 0;
  friend constexpr auto operator<=>(const Epoch&, const Epoch&) = default;
};

// A set of replicas, by their places in the volume's list.
class Members {
 public:
  constexpr Members() = default;
  static constexpr Members all(unsigned count) { return Members((1u << count) - 1); }
  static constexpr Members only(unsigned member) { return Members(1u << member); }
  static constexpr Members of_bits(std::uint32_t bits) { return Members(bits); }

  constexpr bool has(unsigned member) const { return (bits_ >> member & 1) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr unsigned count() const { return static_cast<unsigned>(std::popcount(bits_)); }
  constexpr std::uint32_t bits() const { return bits_; }
  // Precondition: not empty.
  constexpr unsigned lowest() const { return static_cast<unsigned>(std::countr_zero(bits_)); }
  constexpr bool includes(Members other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr Members with(unsigned member) const { return Members(bits_ | 1u << member); }
  constexpr Members without(unsigned member) const { return Members(bits_ & ~(1u << member)); }
  friend constexpr Members operator&(Members a, Members b) { return Members(a.bits_ & b.bits_); }
  friend constexpr Members operator|(Members a, Members b) { return Members(a.bits_ | b.bits_); }
  friend constexpr Members operator-(Members a, Members b) { return Members(a.bits_ & ~b.bits_); }
  friend constexpr bool operator==(Members, Members) = default;

  // Its own iterator: the lowest member, then the rest. A loop goes over the set as it was.
  constexpr Members begin() const { return *this; }
  constexpr Members end() const { return {}; }
  constexpr unsigned operator*() const { return lowest(); }
  constexpr Members& operator++() { return *this = without(lowest()); }

 private:
  explicit constexpr Members(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};

// The replicas in sync: they have every acknowledged write. A later configuration replaces an
// earlier one.
struct Config {
  Epoch epoch;
  std::uint64_t version = 0;
  Members members;
  friend constexpr bool operator==(const Config&, const Config&) = default;
};
constexpr bool is_later(const Config& a, const Config& b) {
  return std::tie(a.epoch, a.version) > std::tie(b.epoch, b.version);
}

// Possible loss of a replica since it was last named in a configuration.
enum class Loss : std::uint8_t {
  kNone,
  kProcess,  // the program started again: a write may be half there
  kMemory,   // the host did: data that was not flushed may be gone
  kAll,      // its disk is new: everything, until it was copied
};

// Sizes in bytes. A block is the unit of reads and writes; a chunk has one bit in the bitmap.
struct Geometry {
  std::uint64_t size = 0;
  std::uint32_t block = 4096;
  std::uint32_t chunk = 1 << 20;

  std::uint32_t chunks() const { return static_cast<std::uint32_t>((size + chunk - 1) / chunk); }
  std::uint64_t chunk_offset(std::uint32_t index) const { return std::uint64_t{index} * chunk; }
  std::uint64_t chunk_bytes(std::uint32_t index) const {
    return std::min<std::uint64_t>(size - chunk_offset(index), chunk);
  }
  friend constexpr bool operator==(const Geometry&, const Geometry&) = default;
};

struct ChunkRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t end() const { return first + count; }
  friend constexpr bool operator==(const ChunkRange&, const ChunkRange&) = default;
};

}  // namespace cepheus::replica
