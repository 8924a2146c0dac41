#include "nic-emulator/engine/scatter_gather.h"

#include <algorithm>

namespace cepheus::rnic {
namespace {

// Calls copy(key, piece, position, n) for every piece of [offset, offset + length), in order, until
// it says false.
template <typename Copy>
bool for_each_piece(const MemoryTable& memory, PdId pd, std::span<const Sge> sges,
                    std::uint64_t offset, std::size_t length, std::uint32_t access, Copy copy) {
  std::size_t done = 0;
  for (const Sge& sge : sges) {
    if (done == length) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::size_t n = std::min<std::uint64_t>(sge.length - offset, length - done);
    std::uint8_t* piece = memory.translate(sge.lkey, pd, sge.address + offset, n, access);
    if (piece == nullptr || !copy(sge.lkey, piece, done, n)) return false;
    done += n;
    offset = 0;
  }
  return done == length;
}

}  // namespace

std::uint64_t total_length(std::span<const Sge> sges) {
  std::uint64_t sum = 0;
  for (const Sge& sge : sges) sum += sge.length;
  return sum;
}

bool gather(MemoryTable& memory, PdId pd, std::span<const Sge> sges, std::uint64_t offset,
            std::span<std::uint8_t> out) {
  const auto copy = [&](std::uint32_t key, const std::uint8_t* piece, std::size_t at,
                        std::size_t n) {
    return !memory.moves_payload() || memory.copy_out(key, piece, out.data() + at, n);
  };
  return for_each_piece(memory, pd, sges, offset, out.size(), 0, copy);
}

bool scatter(MemoryTable& memory, PdId pd, std::span<const Sge> sges, std::uint64_t offset,
             std::span<const std::uint8_t> data) {
  const auto copy = [&](std::uint32_t key, std::uint8_t* piece, std::size_t at, std::size_t n) {
    return !memory.moves_payload() || memory.copy_in(key, piece, data.data() + at, n);
  };
  return for_each_piece(memory, pd, sges, offset, data.size(), kLocalWrite, copy);
}

}  // namespace cepheus::rnic
