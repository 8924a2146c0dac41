// Moves bytes between a message and the list of memory pieces that holds it (IBTA vol.
// 1, 10.7.2.2).
#pragma once

#include <span>

#include "nic-emulator/engine/memory_table.h"

namespace cepheus::rnic {

std::uint64_t total_length(std::span<const Sge> sges);

// Copies out.size() bytes of the message from `offset` on into `out`. False if a key does not allow
// reading one of the pieces touched, or the list is too short; `out` may be partly written then.
bool gather(MemoryTable& memory, PdId pd, std::span<const Sge> sges, std::uint64_t offset,
            std::span<std::uint8_t> out);

// Copies `data` to the message's bytes from `offset` on, under the same conditions with local write
// access.
bool scatter(MemoryTable& memory, PdId pd, std::span<const Sge> sges, std::uint64_t offset,
             std::span<const std::uint8_t> data);

}  // namespace cepheus::rnic
