#include "wire/pause.h"

namespace cepheus::wire {

constexpr std::size_t kTimesOffset = 4;
constexpr std::size_t kEnd = kTimesOffset + 2 * PauseFrame::kPriorities;
static_assert(kEnd <= PauseFrame::kPayload);
static_assert(Ethernet::kSize + PauseFrame::kPayload <= Frame::kCapacity);

std::optional<PauseFrame> PauseFrame::parse(const Frame& frame) {
  const auto payload = frame.payload();
  if (!is_one(frame) || payload.size() < kPayload || load_be16(payload.data()) != kOpcode) {
    return std::nullopt;
  }
  const std::uint16_t named = load_be16(payload.data() + 2);
  PauseFrame pause;
  for (std::size_t p = 0; p < kPriorities; ++p) {
    if ((named >> p & 1) != 0) pause.quanta[p] = load_be16(payload.data() + kTimesOffset + 2 * p);
  }
  return pause;
}

void PauseFrame::emit(Frame& frame, Mac source) const {
  std::array<std::uint8_t, kPayload> payload{};
  store_be16(payload.data(), kOpcode);
  std::uint16_t named = 0;
  for (std::size_t p = 0; p < kPriorities; ++p) {
    if (!quanta[p]) continue;
    named = static_cast<std::uint16_t>(named | 1u << p);
    store_be16(payload.data() + kTimesOffset + 2 * p, *quanta[p]);
  }
  store_be16(payload.data() + 2, named);
  frame.header_len = Ethernet::kSize;
  Ethernet{kDestination, source, kEtherType}.emit(frame.header().first<Ethernet::kSize>());
  frame.icrc_state = Icrc::kNone;
  frame.set_inline_payload(payload);
}

Duration pause_time(std::uint16_t quanta, BitRate rate) {
  const std::uint64_t bits = quanta * PauseFrame::kQuantumBits;  // below 2^25
  return Duration{static_cast<std::int64_t>(bits * 1'000'000'000 / rate.bits_per_second)};
}

}  // namespace cepheus::wire
