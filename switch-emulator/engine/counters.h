// Named counters of a switch and of each of its ports. Each is a line of counters.def.
//
// They balance, at any time between two calls into the engine:
//   frames in + let through by gates = sent on + taken, held or dropped, each by one name
//   held by gates                    = let through + emptied + held now
//   copies made                      = frames out + copies dropped, each by one name
#pragma once

#include <string>
#include <vector>

#include "wire/counter_table.h"
#include "wire/types.h"

namespace cepheus::fabric {

enum class Counter : std::size_t {
#define CEPHEUS_COUNTER(id, name, part, says) id,
#include "switch-emulator/engine/counters.def"
  kCount
};
inline constexpr wire::CounterText kCounterTexts[] = {
#define CEPHEUS_COUNTER(id, name, part, says) {name, says},
#include "switch-emulator/engine/counters.def"
};

// What a counter says in the balance.
enum class Part : std::uint8_t {
  kNone,
  kIn,        // a frame came in
  kAgain,     // a frame that a gate held is looked at again
  kFate,      // what became of one
  kSentOn,    // ... it became one copy
  kCopy,      // a copy was made
  kLostCopy,  // ... and not sent
  kOut,       // ... and sent
};
constexpr Part part(Counter c) {
  using enum Part;
  constexpr Part kParts[] = {
#define CEPHEUS_COUNTER(id, name, part, says) part,
#include "switch-emulator/engine/counters.def"
  };
  return kParts[static_cast<std::size_t>(c)];
}
constexpr bool is_fate(Counter c) { return part(c) == Part::kFate || part(c) == Part::kSentOn; }

// "drop_spoofed_source"
constexpr std::string_view name(Counter c) {
  return kCounterTexts[static_cast<std::size_t>(c)].name;
}

class Counters {
 public:
  explicit Counters(std::size_t ports = 0) : per_port_(ports) {}
  void add(wire::PortId port, Counter c, std::uint64_t n = 1) {
    total_.add(c, n);
    if (port.value() < per_port_.size()) per_port_[port.value()].add(c, n);
  }
  std::uint64_t operator[](Counter c) const { return total_[c]; }
  // "" if they balance while gates hold `held` frames; else what does not.
  std::string imbalance(std::uint64_t held) const;
  std::uint64_t of(wire::PortId port, Counter c) const { return per_port_[port.value()][c]; }

 private:
  wire::CounterValues<Counter> total_;
  std::vector<wire::CounterValues<Counter>> per_port_;
};

}  // namespace cepheus::fabric
