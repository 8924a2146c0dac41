// State that all queue pairs of a NIC share.
#pragma once

#include <cassert>

#include "nic-emulator/engine/memory_table.h"
#include "nic-emulator/engine/nic.h"
#include "wire/roce.h"

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

  Port& port;
  const Qpn qpn;
  QpState state = QpState::kReset;
  QpAttr attr;  // as last modified; the halves keep the live PSNs
  const QpInit init;
  wire::RoceHeaders envelope;  // headers of every packet to the remote end, up to opcode and PSN
};

}  // namespace cepheus::rnic
