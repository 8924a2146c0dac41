// The kinds of groups that a switch serves.
#include "switch-emulator/engine/group/group.h"
#include "switch-emulator/engine/reduction/reduction_group.h"

namespace cepheus::fabric {

MadeBehaviour make_behaviour(const Mft& mft, const SwitchConfig& config,
                             const GroupRequest& request) {
  if (!request.reduction) return std::make_unique<Group>(mft, config);
  const wire::MrpReject refusal = ReductionGroup::refusal(request);
  if (refusal != wire::MrpReject::kNone) return tl::unexpected(refusal);
  return std::make_unique<ReductionGroup>(mft, config, *request.reduction);
}

}  // namespace cepheus::fabric
