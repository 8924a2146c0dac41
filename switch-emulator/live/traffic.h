// What passed a port of a switch, and what the driver (not the engine) dropped there.
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
    const bool is_roce = frame.icrc_state != wire::Icrc::kNone;  // so do the ports promise
    if (is_roce && wire::opcode_info(static_cast<wire::Opcode>(frame.bytes[wire::kBthOffset]))
                       .multicastable()) {
      payload_bytes += frame.payload_len;
    }
  }
};

struct LinkSideDrops {
  std::uint64_t bad_icrc = 0;  // present and wrong, or missing where the fabric makes them always
  std::uint64_t corrupt = 0;   // damaged on a link so that no packet is left
  std::uint64_t delay_line_full = 0;  // too many frames under way
  std::uint64_t no_slot = 0;          // no payload slot for a frame that has to wait
  std::uint64_t queue_share = 0;      // the sender has its share of the queue before the link
  std::uint64_t no_headroom = 0;      // of a lossless link, whose buffer was full
  std::uint64_t share_used_up = 0;  // the link holds more than its share of a host's payload slots
};

// What queues before links, and pauses, have counted.
struct QueueReading {
  std::uint64_t ecn_marked = 0;
  std::uint64_t high_water = 0;                        // bytes
  std::uint64_t pauses_sent = 0, pauses_received = 0;  // not their repeats
  std::uint64_t paused_us = 0;                         // by the neighbour
  std::uint64_t group_halts = 0;      // groups that began to wait here for a paused port
  std::uint64_t group_halted_us = 0;  // that they waited, all together
};

}  // namespace cepheus::live
