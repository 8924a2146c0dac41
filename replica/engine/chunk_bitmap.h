// A bit for each chunk of a volume: set if its content may differ between replicas.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "replica/engine/volume_types.h"

namespace cepheus::replica {

class ChunkBitmap {
 public:
  ChunkBitmap() = default;
  explicit ChunkBitmap(std::uint32_t chunks) : chunks_(chunks), words_((chunks + 63) / 64) {}
  // Bits beyond the last chunk are dropped, missing words are 0.
  ChunkBitmap(std::uint32_t chunks, std::vector<std::uint64_t> words) : ChunkBitmap(chunks) {
    for (std::size_t i = 0; i < words_.size() && i < words.size(); ++i) words_[i] = words[i];
    if (chunks % 64 != 0) words_.back() &= (std::uint64_t{1} << chunks % 64) - 1;
  }

  std::uint32_t chunks() const { return chunks_; }
  const std::vector<std::uint64_t>& words() const { return words_; }

  bool has(std::uint32_t chunk) const { return (words_[chunk / 64] >> chunk % 64 & 1) != 0; }
  void set(std::uint32_t chunk) { words_[chunk / 64] |= std::uint64_t{1} << chunk % 64; }
  void clear(std::uint32_t chunk) { words_[chunk / 64] &= ~(std::uint64_t{1} << chunk % 64); }
  void set(ChunkRange range) {
    for (std::uint32_t c = range.first; c < range.end(); ++c) set(c);
  }
  void set_all() { set(ChunkRange{0, chunks_}); }
  void add(const ChunkBitmap& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }

  std::uint32_t count() const {
    std::uint32_t sum = 0;
    for (const std::uint64_t word : words_) sum += static_cast<std::uint32_t>(std::popcount(word));
    return sum;
  }
  bool empty() const { return !first(); }
  // The first set bit, if any.
  std::optional<std::uint32_t> first() const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] != 0) {
        return static_cast<std::uint32_t>(i * 64 +
                                          static_cast<std::size_t>(std::countr_zero(words_[i])));
      }
    }
    return std::nullopt;
  }

 private:
  std::uint32_t chunks_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace cepheus::replica
