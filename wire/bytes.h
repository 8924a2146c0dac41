// Numbers and texts of messages of variable length, one after the other, in network byte order.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/byte_order.h"

namespace cepheus::wire {

class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::uint8_t>& out) : out_(out) {}
  void u8(std::uint8_t v) { out_.push_back(v); }
  void u16(std::uint32_t v) { store_be16(more(2), v); }
  void u32(std::uint32_t v) { store_be32(more(4), v); }
  void u64(std::uint64_t v) { store_be64(more(8), v); }
  void bytes(std::span<const std::uint8_t> v) { out_.insert(out_.end(), v.begin(), v.end()); }
  // At most 65535 bytes of it.
  void text(std::string_view v) {
    v = v.substr(0, 0xFFFF);
    u16(static_cast<std::uint32_t>(v.size()));
    out_.insert(out_.end(), v.begin(), v.end());
  }

 private:
  std::uint8_t* more(std::size_t n) {
    out_.resize(out_.size() + n);
    return out_.data() + out_.size() - n;
  }
  std::vector<std::uint8_t>& out_;
};

// Reads past the end give 0, and is_whole() is false from then on.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> in) : in_(in) {}
  std::uint8_t u8() { return has(1) ? *take(1) : 0; }
  std::uint16_t u16() { return has(2) ? load_be16(take(2)) : std::uint16_t{0}; }
  std::uint32_t u32() { return has(4) ? load_be32(take(4)) : 0; }
  std::uint64_t u64() { return has(8) ? load_be64(take(8)) : 0; }
  void bytes(std::span<std::uint8_t> out) {
    if (has(out.size())) std::memcpy(out.data(), take(out.size()), out.size());
  }
  std::string text() {
    const std::size_t n = u16();
    if (!has(n)) return {};
    return std::string(reinterpret_cast<const char*>(take(n)), n);
  }
  std::size_t left() const { return in_.size(); }
  bool is_whole() const { return is_whole_; }
  // Every read succeeded, and nothing is left.
  bool is_done() const { return is_whole_ && in_.empty(); }

 private:
  bool has(std::size_t n) { return is_whole_ = is_whole_ && in_.size() >= n; }
  const std::uint8_t* take(std::size_t n) {
    const std::uint8_t* at = in_.data();
    in_ = in_.subspan(n);
    return at;
  }
  std::span<const std::uint8_t> in_;
  bool is_whole_ = true;
};

}  // namespace cepheus::wire
