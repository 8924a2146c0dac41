// Answers the PROBEs of this switch's hosts (wire/probe.h; docs/protocol.md, "Probes").
#pragma once

#include <vector>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/registration/host_rate.h"
#include "wire/probe.h"
#include "wire/roce.h"

namespace cepheus::fabric {

class Probes {
 public:
  // All outlive it.
  Probes(const SwitchConfig& config, GroupTable& groups, const PortSights& sights)
      : groups_(groups), sights_(sights), rate_(config, &SwitchConfig::probe_rate) {}

  // A frame for a group's address, to the registration port or RoCE's. False: it is no PROBE.
  bool on_frame(Call& call, const Frame& frame, const wire::UdpHeaders& headers);

 private:
  void answer(Call& call, const Frame& frame, const wire::UdpHeaders& headers, wire::Probe probe);
  bool take_order(Call& call, const wire::UdpHeaders& headers, wire::Probe& probe);

  wire::ProbeSight see(const Call& call, const Frame& frame, const wire::UdpHeaders& headers) const;
  std::uint32_t lost_by(const Mft& mft) const;

  GroupTable& groups_;
  const PortSights& sights_;
  HostRate rate_;
  std::vector<std::uint8_t> payload_;  // of the last answer; allocated by the first
};

}  // namespace cepheus::fabric
