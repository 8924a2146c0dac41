// The common part of sender and receivers of a sender group (docs/protocol.md, "Sender groups").
// Members pass regions to the sender with their names, and regions last as long as the group.
#pragma once

#include "libmcast/engine/role.h"

namespace cepheus::mcast {

class SenderGroupRole : public Role {
 public:
  Expected<void> check_may_publish() const override;
  Expected<void> check_may_revoke() const override;
  Expected<void> check_may_name_regions() const override { return {}; }
  mcast_status_t regions_status() const override;

 protected:
  explicit SenderGroupRole(GroupState& group) : group_(group) {}

  GroupState& group_;
};

}  // namespace cepheus::mcast
