#include "soft-roce/engine/scatter_gather.h"

#include <algorithm>
#include <cstring>

namespace cepheus::rnic {
namespace {

// Calls copy(piece, position, n) for every piece of [offset, offset + length), in order.
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
    if (piece == nullptr) return false;
    copy(piece, done, n);
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

bool gather(const MemoryTable& memory, PdId pd, std::span<const Sge> sges, std::uint64_t offset,
            std::span<std::uint8_t> out) {
  return for_each_piece(memory, pd, sges, offset, out.size(), 0,
                        [&](const std::uint8_t* piece, std::size_t at, std::size_t n) {
                          if (memory.moves_payload()) std::memcpy(out.data() + at, piece, n);
                        });
}

bool scatter(const MemoryTable& memory, PdId pd, std::span<const Sge> sges, std::uint64_t offset,
             std::span<const std::uint8_t> data) {
  return for_each_piece(memory, pd, sges, offset, data.size(), kLocalWrite,
                        [&](std::uint8_t* piece, std::size_t at, std::size_t n) {
                          if (memory.moves_payload()) std::memcpy(piece, data.data() + at, n);
                        });
}

}  // namespace cepheus::rnic
