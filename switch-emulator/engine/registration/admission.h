// Whether a REGISTER may make, continue or replace its group's table, before a look at its members:
// its epoch, its leader and the leader's side, the host's rate, and the bounds of groups. A newer
// epoch replaces its leader's table, also a running one.
#pragma once

#include "switch-emulator/engine/registration/ageing.h"
#include "switch-emulator/engine/registration/host_rate.h"
#include "switch-emulator/engine/registration/mrp_request.h"
#include "switch-emulator/engine/registration/placement.h"

namespace cepheus::fabric {

class Admission {
 public:
  Admission(const SwitchConfig& config, const Routes& routes, GroupTable& groups, Ageing& ageing)
      : routes_(routes),
        groups_(groups),
        ageing_(ageing),
        rate_(config, &SwitchConfig::register_rate) {}

  // The request is too late: it changes nothing and gets no answer.
  bool is_stale(const MrpRequest& request) const;
  bool is_within_rate(const Call& call, const MrpRequest& request);
  // Ends the table of an older epoch.
  Refusal refuse(Call& call, const MrpRequest& request);
  // Makes the group's table.
  tl::expected<GroupEntry*, wire::MrpReject> open(Call& call, const MrpRequest& request);

 private:
  bool is_under_way(const MrpRequest& request) const;

  const Routes& routes_;
  GroupTable& groups_;
  Ageing& ageing_;
  HostRate rate_;
};

}  // namespace cepheus::fabric
