// Memory that is registered with the NIC once, and given out in pages to requests: their data on its way.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>

namespace cepheus::replica {

class BounceArena {
 public:
  static constexpr std::size_t kPage = 4096;

  // Throws std::bad_alloc.
  explicit BounceArena(std::size_t size);
  ~BounceArena() { munmap(base_, size_); }
  BounceArena(const BounceArena&) = delete;
  BounceArena& operator=(const BounceArena&) = delete;

  std::span<std::uint8_t> all() const { return {base_, size_}; }

  // The first room there is for it; null: none now.
  std::uint8_t* take(std::size_t length);
  // As it was taken.
  void give_back(std::uint8_t* piece, std::size_t length);

 private:
  static std::size_t pages(std::size_t length) { return (length + kPage - 1) / kPage * kPage; }

  std::uint8_t* base_;
  std::size_t size_;
  std::map<std::size_t, std::size_t> free_;  // offset -> bytes, none beside another
};

}  // namespace cepheus::replica
