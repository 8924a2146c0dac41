// A sighting is packed into four words: time; node, port, event, kind, flags; addresses; number and
// bytes. The kind comes from the BTH's opcode and the AETH's upper three bits. A frame without an
// ICRC is registration. Shorter headers leave the fields that they lack at 0.
#include "support/recording/sighting.h"

#include "wire/byte_order.h"
#include "wire/roce.h"

namespace cepheus::recording {
namespace {

constexpr std::size_t kSourceOffset = wire::kIpOffset + 12;
constexpr std::size_t kDestinationOffset = wire::kIpOffset + 16;
constexpr std::size_t kPsnOffset = wire::kBthOffset + 8;

PacketKind kind_of(const wire::Frame& frame) {
  const auto opcode = static_cast<wire::Opcode>(frame.bytes[wire::kBthOffset]);
  if (opcode == wire::Opcode::kCnp) return PacketKind::kCnp;
  if (opcode != wire::Opcode::kRcAcknowledge) return PacketKind::kData;
  switch (frame.bytes[wire::kExtensionOffset] >> 5) {  // AETH
    case 0:
      return PacketKind::kAck;
    case 1:
      return PacketKind::kRnrNak;
    default:
      return PacketKind::kNak;
  }
}

}  // namespace

Sighting::Words Sighting::words() const {
  const auto flags = (is_caused ? 1u : 0u) | (is_repeat ? 2u : 0u);
  return {static_cast<std::uint64_t>(at_ns),
          std::uint64_t{node} << 48 | std::uint64_t{port} << 32 |
              std::uint64_t{static_cast<std::uint8_t>(event)} << 16 |
              std::uint64_t{static_cast<std::uint8_t>(kind)} << 8 | flags,
          std::uint64_t{source} << 32 | destination, std::uint64_t{number} << 32 | bytes};
}

Sighting Sighting::of(const Words& words) {
  const auto low = [&](std::size_t word) { return static_cast<std::uint32_t>(words[word]); };
  const auto high = [&](std::size_t word) { return static_cast<std::uint32_t>(words[word] >> 32); };
  Sighting s;
  s.at_ns = static_cast<std::int64_t>(words[0]);
  s.node = static_cast<std::uint16_t>(high(1) >> 16);
  s.port = static_cast<std::uint16_t>(high(1));
  const auto event = static_cast<Event>(low(1) >> 16);
  s.event = event <= Event::kReceived ? event : Event::kCounts;
  const auto kind = static_cast<PacketKind>(low(1) >> 8);
  s.kind = kind <= PacketKind::kControl ? kind : PacketKind::kOther;
  s.is_caused = (low(1) & 1) != 0;
  s.is_repeat = (low(1) & 2) != 0;
  s.source = high(2);
  s.destination = low(2);
  s.number = high(3);
  s.bytes = low(3);
  return s;
}

Sighting describe(const wire::Frame& frame) {
  Sighting s;
  s.bytes = static_cast<std::uint32_t>(frame.payload_len);
  if (frame.header_len < wire::kBthOffset) return s;
  s.source = wire::load_be32(frame.bytes.data() + kSourceOffset);
  s.destination = wire::load_be32(frame.bytes.data() + kDestinationOffset);
  if (frame.icrc_state == wire::Icrc::kNone) {
    s.kind = PacketKind::kControl;
  } else if (frame.header_len >= wire::kExtensionOffset) {
    s.kind = kind_of(frame);
    s.number = wire::load_be32(frame.bytes.data() + kPsnOffset) & wire::Psn::kMask;
  }
  return s;
}

}  // namespace cepheus::recording
