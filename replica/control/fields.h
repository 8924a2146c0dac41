// Fields of messages and records, listed once for both directions: Put appends them in network byte
// order, Get reads them back.
#pragma once

#include <array>
#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include "replica/engine/volume_types.h"
#include "wire/bytes.h"

namespace cepheus::replica {

class Put {
 public:
  explicit Put(std::vector<std::uint8_t>& out) : w_(out) {}
  template <typename... V>
  void operator()(const V&... v) {
    (value(v), ...);
  }
  template <typename E>
  void one_of(E v, E, E) {
    value(static_cast<std::uint8_t>(v));
  }
  // Preceded by its length.
  template <typename T>
  void list(const std::vector<T>& v, std::size_t = 0) {
    value(static_cast<std::uint32_t>(v.size()));
    for (const T& each : v) value(each);
  }

 private:
  void value(bool v) { w_.u8(v ? 1 : 0); }
  void value(std::uint8_t v) { w_.u8(v); }
  void value(std::uint16_t v) { w_.u16(v); }
  void value(std::uint32_t v) { w_.u32(v); }
  void value(std::uint64_t v) { w_.u64(v); }
  void value(Members v) { w_.u32(v.bits()); }
  void value(const std::string& v) { w_.text(v); }
  template <std::size_t N>
  void value(const std::array<std::uint8_t, N>& v) {
    w_.bytes(v);
  }

  wire::ByteWriter w_;
};

class Get {
 public:
  explicit Get(std::span<const std::uint8_t> in) : r_(in) {}
  template <typename... V>
  void operator()(V&... v) {
    (value(v), ...);
  }
  template <typename E>
  void one_of(E& v, E first, E last) {
    const std::uint8_t found = r_.u8();
    v = static_cast<E>(found);
    is_sound_ &=
        found >= static_cast<std::uint8_t>(first) && found <= static_cast<std::uint8_t>(last);
  }
  template <typename T>
  void list(std::vector<T>& v, std::size_t most = std::vector<T>().max_size()) {
    const std::size_t count = r_.u32();
    is_sound_ &= r_.is_whole() && count <= most && count <= r_.left() / sizeof(T);
    if (!is_sound_) return;
    v.resize(count);
    for (T& each : v) value(each);
  }
  std::size_t left() const { return r_.left(); }
  bool is_whole() const { return is_sound_ && r_.is_whole(); }
  bool is_done() const { return is_sound_ && r_.is_done(); }

 private:
  void value(bool& v) { v = r_.u8() != 0; }
  void value(std::uint8_t& v) { v = r_.u8(); }
  void value(std::uint16_t& v) { v = r_.u16(); }
  void value(std::uint32_t& v) { v = r_.u32(); }
  void value(std::uint64_t& v) { v = r_.u64(); }
  void value(Members& v) { v = Members::of_bits(r_.u32() & Members::all(kMostReplicas).bits()); }
  void value(std::string& v) { v = r_.text(); }
  // Bytes with a fixed value.
  template <std::size_t N>
  void value(const std::array<std::uint8_t, N>& v) {
    std::array<std::uint8_t, N> found{};
    r_.bytes(found);
    is_sound_ &= found == v;
  }
  template <std::size_t N>
  void value(std::array<std::uint8_t, N>& v) {
    r_.bytes(v);
  }

  wire::ByteReader r_;
  bool is_sound_ = true;
};

// T, or const T.
template <typename V, typename T>
concept Is = std::same_as<std::remove_const_t<V>, T>;

void fields(auto& io, Is<Epoch> auto& v) { io(v.number, v.writer); }
void fields(auto& io, Is<Config> auto& v) {
  fields(io, v.epoch);
  io(v.version, v.members);
}
void fields(auto& io, Is<Geometry> auto& v) { io(v.size, v.block, v.chunk); }

}  // namespace cepheus::replica
