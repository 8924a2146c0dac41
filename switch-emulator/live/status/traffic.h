// Traffic at a port of a switch, and the driver's (not the engine's) counters there.
#pragma once

#include <cstdint>

#include "wire/roce.h"

namespace cepheus::live {

struct Traffic {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
  std::uint64_t payload_bytes = 0;  // of RoCE packets that carry SEND or WRITE data

  void add(const wire::Frame& frame) {
    ++frames;
    bytes += frame.size();
    const bool is_roce = frame.icrc_state != wire::Icrc::kNone;  // the ports guarantee it
    if (is_roce && wire::opcode_info(static_cast<wire::Opcode>(frame.bytes[wire::kBthOffset]))
                       .multicastable()) {
      payload_bytes += frame.payload_len;
    }
  }
};

// A field for each line of readings.def.
struct LinkSideDrops {
#define CEPHEUS_READING(object, value, name, kind, help)
#define CEPHEUS_DROP(field, name, help) std::uint64_t field = 0;
#define CEPHEUS_QUEUE_READING(field, name, kind, help)
#include "switch-emulator/live/status/readings.def"
};

// Counters of queues before links, and of pauses.
struct QueueReading {
#define CEPHEUS_READING(object, value, name, kind, help)
#define CEPHEUS_DROP(field, name, help)
#define CEPHEUS_QUEUE_READING(field, name, kind, help) std::uint64_t field = 0;
#include "switch-emulator/live/status/readings.def"
};

}  // namespace cepheus::live
