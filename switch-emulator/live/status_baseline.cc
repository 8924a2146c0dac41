#include "switch-emulator/live/status_baseline.h"

#include <algorithm>

namespace cepheus::live {
namespace {

void subtract(NamedCounters& counters, const NamedCounters& baseline) {
  for (auto& [name, value] : counters) {
    const auto before = std::find_if(baseline.begin(), baseline.end(),
                                     [&](const auto& entry) { return entry.first == name; });
    const bool is_sum = !name.ends_with("high_water");
    if (before != baseline.end() && is_sum) value -= before->second;
  }
  std::erase_if(counters, [](const auto& entry) { return entry.second == 0; });
}

void subtract(net::LinkCounters& counters, const net::LinkCounters& baseline) {
  counters.frames -= baseline.frames;
  counters.bytes -= baseline.bytes;
  counters.dropped_loss -= baseline.dropped_loss;
  counters.dropped_queue_full -= baseline.dropped_queue_full;
  counters.dropped_down -= baseline.dropped_down;
  counters.duplicated -= baseline.duplicated;
  counters.reordered -= baseline.reordered;
  counters.corrupted -= baseline.corrupted;
}

void subtract(PortStatus& port, const PortStatus& baseline) {
  subtract(port.in, baseline.in);
  subtract(port.out, baseline.out);
  port.rx_payload_bytes -= baseline.rx_payload_bytes;
  port.tx_payload_bytes -= baseline.tx_payload_bytes;
  port.rx_frames -= baseline.rx_frames;
  port.tx_frames -= baseline.tx_frames;
  port.rx_bytes -= baseline.rx_bytes;
  port.tx_bytes -= baseline.tx_bytes;
  port.dropped_egress_full -= baseline.dropped_egress_full;
  subtract(port.counters, baseline.counters);
}

}  // namespace

void subtract(FabricStatus& status, const FabricStatus& baseline) {
  for (std::size_t s = 0; s < std::min(status.switches.size(), baseline.switches.size()); ++s) {
    SwitchStatus& state = status.switches[s];
    const SwitchStatus& before = baseline.switches[s];
    subtract(state.counters, before.counters);
    for (std::size_t p = 0; p < std::min(state.ports.size(), before.ports.size()); ++p) {
      subtract(state.ports[p], before.ports[p]);
    }
  }
}

}  // namespace cepheus::live
