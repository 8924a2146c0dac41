// What was seen of one packet at one place, or what a switch or NIC counted meanwhile: small and
// plain, for rings and sockets. A timeline (timeline.h) makes pictures of many.
#pragma once

#include <array>
#include <cstdint>

#include "wire/frame.h"

namespace cepheus::recording {

enum class Event : std::uint8_t {
  kArrives,    // a packet, at a node by a port
  kLeaves,     // ... and what became of it behind it: `is_caused`
  kCounts,     // a counter of the node grew: `number` is its place in the node's names, `bytes` by
               // how much; the packet is the one that was being handled, if any
  kPosted,     // a program at a host sends message `number`, with its bytes
  kCompleted,  // ... and all have it
  kReceived,   // a program at a host has received so many bytes, of message `number`
};
enum class PacketKind : std::uint8_t { kOther, kData, kAck, kNak, kRnrNak, kCnp, kControl };

struct Sighting {
  std::int64_t at_ns = 0;
  std::uint16_t node = 0;
  std::uint16_t port = 0;
  Event event = Event::kArrives;
  PacketKind kind = PacketKind::kOther;
  bool is_caused = false;         // kLeaves: by what arrived last at this node
  bool is_repeat = false;         // its source had sent it before
  std::uint32_t source = 0;       // IPv4
  std::uint32_t destination = 0;  // IPv4
  std::uint32_t number = 0;       // PSN
  std::uint32_t bytes = 0;        // of payload

  using Words = std::array<std::uint64_t, 4>;
  Words words() const;
  // Anything may stand there: events and kinds that do not exist become kCounts and kOther.
  static Sighting of(const Words& words);
};

inline bool is_feedback(PacketKind kind) {
  return kind == PacketKind::kAck || kind == PacketKind::kNak || kind == PacketKind::kRnrNak;
}

// What headers say; the rest is the caller's to set. Offsets only: cheap enough for a datapath.
Sighting describe(const wire::Frame& frame);

}  // namespace cepheus::recording
