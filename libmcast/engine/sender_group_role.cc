#include "libmcast/engine/sender_group_role.h"

namespace cepheus::mcast {

Expected<void> SenderGroupRole::check_may_publish() const {
  if (group_.state() == MCAST_GROUP_WAITING) return {};
  return fail(MCAST_ERR_INVALID,
              "regions are named to the sender of a sender group before it leads: publish them "
              "before, or create fresh groups");
}

Expected<void> SenderGroupRole::check_may_revoke() const {
  return fail(MCAST_ERR_INVALID,
              "regions of a sender group are revoked with the group: destroy it");
}

// The sender names them when it registers the group.
mcast_status_t SenderGroupRole::regions_status() const { return group_.status(); }

}  // namespace cepheus::mcast
