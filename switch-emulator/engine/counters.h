// Named counters of a switch and of each of its ports. Each is a line of counters.def.
//
// They balance, at any time between two calls into the engine:
//   frames in + let through by gates = sent on + consumed, held or dropped, each by one name
//   held by gates                    = let through + emptied + held now
//   copies made                      = frames out + copies dropped, each by one name
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "wire/counter_table.h"
#include "wire/types.h"

namespace cepheus::fabric {

enum class Counter : std::size_t {
#define CEPHEUS_COUNTER(id, name, part, help) id,
#include "switch-emulator/engine/counters.def"
  kCount
};
inline constexpr wire::CounterText kCounterTexts[] = {
#define CEPHEUS_COUNTER(id, name, part, help) {name, help},
#include "switch-emulator/engine/counters.def"
};

// A counter's part in the balance.
enum class Part : std::uint8_t {
  kNone,
  kIn,        // a frame was received
  kAgain,     // a gate let a held frame through
  kFate,      // fate of a frame
  kSentOn,    // ... it was sent as one copy
  kCopy,      // a copy was made
  kLostCopy,  // ... and not sent
  kOut,       // ... and sent
};
inline constexpr Part kParts[] = {
#define CEPHEUS_COUNTER(id, name, part, help) Part::part,
#include "switch-emulator/engine/counters.def"
};
constexpr Part part(Counter c) { return kParts[static_cast<std::size_t>(c)]; }
constexpr bool is_fate(Counter c) { return part(c) == Part::kFate || part(c) == Part::kSentOn; }

// "drop_spoofed_source"
constexpr std::string_view name(Counter c) {
  return kCounterTexts[static_cast<std::size_t>(c)].name;
}

class Counters {
 public:
  explicit Counters(std::size_t ports = 0) : by_port_(ports + 1) {}
  // `port`: one of the switch, or none.
  void add(wire::PortId port, Counter c, std::uint64_t n = 1) { by_port_[row(port)].add(c, n); }
  std::uint64_t operator[](Counter c) const {
    return std::accumulate(by_port_.begin(), by_port_.end(), std::uint64_t{0},
                           [&](std::uint64_t sum, const auto& values) { return sum + values[c]; });
  }
  // "" if they balance while gates hold `held` frames; else the difference as text.
  std::string imbalance(std::uint64_t held) const;
  std::uint64_t of(wire::PortId port, Counter c) const { return by_port_[row(port)][c]; }

 private:
  // The slot without a port comes first: its number is the largest, and one more is 0.
  static std::size_t row(wire::PortId port) { return static_cast<std::uint16_t>(port.value() + 1); }
  static_assert(wire::PortId().value() == 0xFFFF);

  std::vector<wire::CounterValues<Counter>> by_port_;
};

}  // namespace cepheus::fabric
