// What a host's port shows to those that examine the way to it (engine/port_sight.h).
#pragma once

#include "switch-emulator/engine/port_sight.h"
#include "switch-emulator/ports/access_port.h"

namespace cepheus::live {

// Losses at an interface that hosts share count for each of them.
class HostSight final : public fabric::PortSight {
 public:
  // Both outlive it. `shared`: counters of the interface that it shares with other hosts, or null.
  HostSight(const fabric::AccessPort& port, const fabric::PortCounters* shared)
      : port_(port), shared_(shared) {}
  void set_box(std::uint8_t doubts, std::uint8_t cores) {
    doubts_ = doubts;
    cores_ = cores;
  }

  std::uint8_t doubts() const override { return doubts_; }
  std::uint8_t cores() const override { return cores_; }
  std::uint8_t fill() const override { return port_.fill(); }
  std::uint32_t lost() const override {
    return lost_of(port_.counters()) + (shared_ != nullptr ? lost_of(*shared_) : 0);
  }

 private:
  static std::uint32_t lost_of(const fabric::PortCounters& counters) {
    using enum fabric::PortCounter;
    std::uint64_t lost = 0;
    for (const auto why : {kDropEgressFull, kDropIngressFull, kDropKernelFull, kDropNoSlot}) {
      lost += counters[why];
    }
    return static_cast<std::uint32_t>(lost);
  }

  const fabric::AccessPort& port_;
  const fabric::PortCounters* const shared_;
  std::uint8_t doubts_ = 0;
  std::uint8_t cores_ = 0;
};

}  // namespace cepheus::live
