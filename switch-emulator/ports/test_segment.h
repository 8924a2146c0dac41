// For tests: a client's possible changes to the memory that it shares with the switch, and a check
// for bytes that must not be there.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "switch-emulator/ports/port_segment.h"

namespace cepheus::fabric {

inline constexpr std::size_t kSharedWords = 8;

// Writes a value into each word outside of the rings.
inline std::array<std::function<void(std::uint32_t)>, kSharedWords> shared_words(
    const PortSegment& shared) {
  const auto index = [](SharedIndex* word) {
    return [word](std::uint32_t value) { word->store(value); };
  };
  return {index(shared.tx().produced),
          index(shared.rx().consumed),
          index(shared.returns().consumed),
          index(shared.tx().consumed),
          index(shared.rx().produced),
          index(shared.returns().produced),
          [&shared](std::uint32_t value) { shared.client_sleeps().send_request(value); },
          [&shared](std::uint32_t value) { shared.switch_sleeps().send_request(value); }};
}

// Behind the lengths of a delivered frame there may be another user's message, or a stack.
inline bool has_nothing_behind_its_lengths(const Descriptor& d) {
  const bool is_inline = d.payload == Descriptor::kInline;
  const std::size_t used = d.header_len + (is_inline ? d.payload_len : std::size_t{0});
  if (used > d.bytes.size()) return false;
  const auto behind = std::span(d.bytes).subspan(used);
  const bool has_icrc = d.icrc_state == static_cast<std::uint8_t>(wire::Icrc::kPresent);
  return std::all_of(behind.begin(), behind.end(), [](std::uint8_t byte) { return byte == 0; }) &&
         (d.icrc == 0 || has_icrc) && d.reserved0 == 0 && d.reserved1 == 0 && d.reserved2 == 0;
}

}  // namespace cepheus::fabric
