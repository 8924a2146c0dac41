// Named counters of a switch and of each of its ports: copies out = delivered + dropped by a named
// reason. Each is a line of counters.def.
#pragma once

#include <vector>

#include "wire/counter_table.h"
#include "wire/types.h"

namespace cepheus::fabric {

enum class Counter : std::size_t {
#define CEPHEUS_COUNTER(id, name, says) id,
#include "switch-emulator/engine/counters.def"
  kCount
};
inline constexpr wire::CounterText kCounterTexts[] = {
#define CEPHEUS_COUNTER(id, name, says) {name, says},
#include "switch-emulator/engine/counters.def"
};

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
  std::uint64_t of(wire::PortId port, Counter c) const { return per_port_[port.value()][c]; }

 private:
  wire::CounterValues<Counter> total_;
  std::vector<wire::CounterValues<Counter>> per_port_;
};

}  // namespace cepheus::fabric
