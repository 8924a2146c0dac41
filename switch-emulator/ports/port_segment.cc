// Reading a descriptor checks lengths and states, and copies it first: the other process may change
// it meanwhile. Writing one copies only the frame's bytes and clears the rest without a branch on
// its length. map() refuses an impossible number of slots; the mapping itself checks seals and
// size.
#include "switch-emulator/ports/port_segment.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace cepheus::fabric {
namespace {

constexpr std::size_t kRingsOffset = 4096;
constexpr std::size_t kFrameRingBytes = kFrameRing * sizeof(Descriptor);

using Bytes = std::array<std::uint8_t, wire::Frame::kCapacity>;

// Ones, then as many zeros.
constexpr auto kMask = [] {
  std::array<std::uint8_t, 2 * wire::Frame::kCapacity> mask{};
  for (std::size_t n = 0; n < wire::Frame::kCapacity; ++n) mask[n] = 0xFF;
  return mask;
}();

// The first `used` bytes, and zeros behind them. The mask stays in registers: the other process
// never sees the cleared bytes, and no branch depends on a length.
void copy_used(const Bytes& from, std::size_t used, Bytes& to) {
  assert(used <= from.size());
  const std::uint8_t* const mask = kMask.data() + from.size() - used;
  const auto copy = [&]<typename Word>(std::size_t at, Word word) {
    Word kept{};
    std::memcpy(&word, from.data() + at, sizeof word);
    std::memcpy(&kept, mask + at, sizeof kept);
    word &= kept;
    std::memcpy(to.data() + at, &word, sizeof word);
  };
  using Pair = std::uint64_t __attribute__((vector_size(16)));
  constexpr std::size_t kPairs = wire::Frame::kCapacity / sizeof(Pair);
#pragma GCC unroll 8
  for (std::size_t n = 0; n < kPairs; ++n) copy(n * sizeof(Pair), Pair{});
  copy(kPairs * sizeof(Pair), std::uint64_t{});
  static_assert(kPairs * sizeof(Pair) + sizeof(std::uint64_t) == wire::Frame::kCapacity);
}

}  // namespace

struct PortSegment::Layout {
  struct alignas(kCacheLine) Line {
    SharedIndex tx, rx, returns;
  };
  Line client;
  Line fabric;
  alignas(kCacheLine) WakeFlag client_sleeps;
  alignas(kCacheLine) WakeFlag switch_sleeps;
};

void write_descriptor(const wire::Frame& frame, std::uint64_t payload, Descriptor& out) {
  const std::size_t inline_len = payload == Descriptor::kInline ? frame.payload_len : 0u;
  copy_used(frame.bytes, frame.header_len + inline_len, out.bytes);
  out.header_len = frame.header_len;
  out.payload_len = frame.payload_len;
  out.icrc_state = static_cast<std::uint8_t>(frame.icrc_state);
  out.reserved0 = 0;
  out.reserved1 = 0;
  out.icrc = frame.icrc_state == wire::Icrc::kPresent ? frame.icrc : 0;
  out.reserved2 = 0;
  out.payload = payload;
}

bool read_descriptor(const Descriptor& descriptor, wire::Frame& frame) {
  if (descriptor.header_len == 0 || descriptor.header_len > wire::Frame::kCapacity) return false;
  if (descriptor.icrc_state > static_cast<std::uint8_t>(wire::Icrc::kDeferred)) return false;
  frame.header_len = descriptor.header_len;
  if (descriptor.payload == Descriptor::kInline &&
      !frame.payload_fits_inline(descriptor.payload_len)) {
    return false;
  }
  frame.bytes = descriptor.bytes;
  frame.payload_len = descriptor.payload_len;
  frame.icrc_state = static_cast<wire::Icrc>(descriptor.icrc_state);
  frame.icrc = descriptor.icrc;
  frame.ref = wire::kNoBuffer;
  frame.external = nullptr;
  return true;
}

std::size_t PortSegment::size_for(std::uint32_t slots) {
  static_assert(sizeof(Layout) <= kRingsOffset);
  return round_up_to_page(kRingsOffset + 2 * kFrameRingBytes + slots * sizeof(std::uint32_t));
}

wire::Result<PortSegment> PortSegment::map(int fd, std::uint32_t slots) {
  if (!std::has_single_bit(slots) || slots > 1u << 20) {
    return wire::fail(wire::ErrorCode::kRefused,
                      "a port with an impossible number of payload slots");
  }
  auto memory = Mapping::map(fd, 0, size_for(slots), Mapping::Access::kReadWrite);
  if (!memory) return tl::unexpected(memory.error());
  PortSegment segment;
  segment.memory_ = std::move(*memory);
  segment.slots_ = slots;
  return segment;
}

PortSegment::Layout& PortSegment::layout() const { return *reinterpret_cast<Layout*>(at(0)); }

RingView<Descriptor> PortSegment::tx() const {
  return {&layout().client.tx, &layout().fabric.tx, reinterpret_cast<Descriptor*>(at(kRingsOffset)),
          kFrameRing};
}

RingView<Descriptor> PortSegment::rx() const {
  return {&layout().fabric.rx, &layout().client.rx,
          reinterpret_cast<Descriptor*>(at(kRingsOffset + kFrameRingBytes)), kFrameRing};
}

RingView<std::uint32_t> PortSegment::returns() const {
  return {&layout().fabric.returns, &layout().client.returns,
          reinterpret_cast<std::uint32_t*>(at(kRingsOffset + 2 * kFrameRingBytes)), slots_};
}

WakeFlag& PortSegment::client_sleeps() const { return layout().client_sleeps; }
WakeFlag& PortSegment::switch_sleeps() const { return layout().switch_sleeps; }

}  // namespace cepheus::fabric
