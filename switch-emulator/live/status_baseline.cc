#include "switch-emulator/live/status_baseline.h"

#include <algorithm>

#include "switch-emulator/live/readings.h"

namespace cepheus::live {
namespace {

template <typename Object>
void subtract_counters(Object& now, const Object& before) {
  for (const Reading<Object>& reading : readings<Object>()) {
    if (reading.kind != Kind::kCounter) continue;
    const std::uint64_t value = reading.of(now), then = reading.of(before);
    reading.set(now, value < then ? value : value - then);  // less: it began again meanwhile
  }
}

// Of those that were there before.
template <typename Group, typename IsSame>
void subtract_groups(std::vector<Group>& groups, const std::vector<Group>& baseline,
                     IsSame is_same) {
  for (Group& group : groups) {
    const auto before = std::find_if(baseline.begin(), baseline.end(),
                                     [&](const Group& each) { return is_same(each, group); });
    if (before != baseline.end()) subtract_counters(group, *before);
  }
}

void subtract(PortStatus& port, const PortStatus& baseline) {
  subtract_counters(port, baseline);
  subtract_counters(port.in, baseline.in);
  subtract_counters(port.out, baseline.out);
}

void subtract(SwitchStatus& one, const SwitchStatus& baseline) {
  subtract_counters(one, baseline);
  for (std::size_t p = 0; p < std::min(one.ports.size(), baseline.ports.size()); ++p) {
    subtract(one.ports[p], baseline.ports[p]);
  }
  subtract_groups(one.groups, baseline.groups,
                  [](const auto& a, const auto& b) { return a.id == b.id && a.epoch == b.epoch; });
  subtract_groups(one.sender_groups, baseline.sender_groups, [](const auto& a, const auto& b) {
    return a.sender == b.sender && a.virtual_qpn == b.virtual_qpn && a.epoch == b.epoch;
  });
}

}  // namespace

void subtract(FabricStatus& status, const FabricStatus& baseline) {
  subtract_counters(status, baseline);
  for (std::size_t s = 0; s < std::min(status.switches.size(), baseline.switches.size()); ++s) {
    subtract(status.switches[s], baseline.switches[s]);
  }
}

}  // namespace cepheus::live
