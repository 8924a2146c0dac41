// One packet at one place, or one step of a switch's or NIC's counter: small and plain, for rings
// and sockets. A timeline (timeline.h) draws many.
#pragma once

#include <array>
#include <cstdint>

#include "wire/frame.h"

namespace cepheus::recording {

enum class Event : std::uint8_t {
  kArrives,    // a packet arrives at a node's port
  kLeaves,     // a packet leaves; `is_caused` links it to an arrival
  kCounts,     // a counter of the node grew: `number` is its index in the node's names, `bytes`
               // the difference, the packet the one in work, if any
  kPosted,     // a program at a host sends message `number`, with its bytes
  kCompleted,  // ... and all members have it
  kReceived,   // a program at a host has received `bytes` of message `number`
};
enum class PacketKind : std::uint8_t { kOther, kData, kAck, kNak, kRnrNak, kCnp, kControl };

struct Sighting {
  std::int64_t at_ns = 0;
  std::uint16_t node = 0;
  std::uint16_t port = 0;
  Event event = Event::kArrives;
  PacketKind kind = PacketKind::kOther;
  bool is_caused = false;         // kLeaves: by the last arrival at this node
  bool is_repeat = false;         // its source had sent it before
  std::uint32_t source = 0;       // IPv4
  std::uint32_t destination = 0;  // IPv4
  std::uint32_t number = 0;       // PSN
  std::uint32_t bytes = 0;        // of payload

  using Words = std::array<std::uint64_t, 4>;
  Words words() const;
  // `words` are untrusted: unknown events and kinds become kCounts and kOther.
  static Sighting of(const Words& words);
};

inline bool is_feedback(PacketKind kind) {
  return kind == PacketKind::kAck || kind == PacketKind::kNak || kind == PacketKind::kRnrNak;
}

// Fills in the headers' fields; the caller sets the rest. Reads fixed offsets: cheap on a datapath.
Sighting describe(const wire::Frame& frame);

}  // namespace cepheus::recording
