// State that all queue pairs of a NIC share.
#pragma once

#include <cassert>

#include "nic-emulator/engine/memory_table.h"
#include "nic-emulator/engine/nic.h"
#include "wire/roce.h"
#include "wire/splitmix.h"

namespace cepheus::rnic {

struct Port {
  explicit Port(const NicConfig& c)
      : config(c), memory(c.max_regions, c.seed, c.moves_payload, c.guard) {
    assert(!c.congestion || c.congestion->check());
  }

  NicConfig config;
  Counters counters;
  MemoryTable memory;
};

// State that both halves of a queue pair need.
struct QpContext {
  QpContext(Port& p, Qpn n, const QpInit& i) : port(p), qpn(n), init(i) { attr.cap = i.cap; }

  // The key of an empty READ or WRITE is not checked (IBTA 9.7.4.1.5).
  bool may_access(const wire::Reth& reth, Access access) const {
    return reth.dma_length == 0 || port.memory.translate(reth.rkey, init.pd, reth.virtual_address,
                                                         reth.dma_length, access) != nullptr;
  }
  // Stores `data` at `offset` of a WRITE. False: it was deregistered or unmapped in the meantime.
  bool store(const wire::Reth& write, std::uint64_t offset,
             std::span<const std::uint8_t> data) const {
    if (data.empty()) return true;
    std::uint8_t* const to = port.memory.translate(
        write.rkey, init.pd, write.virtual_address + offset, data.size(), kRemoteWrite);
    return to != nullptr && port.memory.copy_in_order(write.rkey, to, data.data(), data.size());
  }

  Port& port;
  const Qpn qpn;
  QpState state = QpState::kReset;
  // The next random number of this queue pair, for manners that need one.
  std::uint64_t draw() { return wire::splitmix(port.config.seed ^ qpn.value(), draws++); }
  // A random time from `low` to `high`.
  Duration draw(Duration low, Duration high) {
    const auto span = static_cast<std::uint64_t>((high - low).count());
    return low + Duration{static_cast<std::int64_t>(draw() % (span + 1))};
  }

  QpAttr attr;  // as last modified; the halves keep the live PSNs
  const QpInit init;
  std::uint64_t draws = 0;
  wire::RoceHeaders envelope;  // headers of every packet to the remote end, up to opcode and PSN
};

}  // namespace cepheus::rnic
