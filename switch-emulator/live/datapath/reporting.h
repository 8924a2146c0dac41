// The status of a live fabric's switches, copied from the counting objects: engines, links and
// ports.
//
// Those objects belong to the datapath's thread and stay there. They are copied in slices of some
// microseconds, so that packets hardly wait.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "net/link.h"
#include "switch-emulator/engine/switch.h"
#include "switch-emulator/live/status/status.h"
#include "switch-emulator/live/status/traffic.h"
#include "switch-emulator/ports/access_port.h"

namespace cepheus::live {

class Reporting {
 public:
  // Sources of a port's readings. Null and empty: there are none.
  struct PortSource {
    const net::Link* in = nullptr;  // to the switch
    const net::Link* out = nullptr;
    const Traffic* rx = nullptr;
    const Traffic* tx = nullptr;
    const LinkSideDrops* drops = nullptr;
    std::function<QueueReading()> queue = {};
    const fabric::AccessPort* access = nullptr;  // hosts'
    std::function<std::int64_t()> client_pid = {};
  };
  struct SwitchSource {
    const fabric::Switch* engine = nullptr;
    std::vector<PortSource> ports;  // in the engine's order
    const fabric::PortCounters* one_armed = nullptr;
  };
  // Runs its argument on the datapath's thread, before it returns.
  using Slice = std::function<void(const std::function<void()>&)>;

  explicit Reporting(std::vector<SwitchSource> switches = {}) : switches_(std::move(switches)) {}

  // From any thread that may wait for the datapath's.
  std::vector<SwitchStatus> status(const Slice& slice) const;
  // The same, with the time before the first slice. At a later time, packets that arrive between two
  // slices would look late (status/late.h).
  FabricStatus timed_status(const Slice& slice) const;

 private:
  std::vector<SwitchSource> switches_;
};

}  // namespace cepheus::live
