#include "libmcast/engine/group_state.h"

namespace cepheus::mcast {

GroupState::GroupState(const GroupSettings& settings, mrp::Publisher regions)
    : settings_(settings),
      work_(settings.path_mtu, settings.nic_window),
      regions_(std::move(regions)),
      watchdog_(settings.sender_time_limit) {}

mcast_status_t GroupState::status() const {
  if (state_ == MCAST_GROUP_ACTIVE) return MCAST_OK;
  return state_ == MCAST_GROUP_FAILED ? status_ : MCAST_INPROGRESS;
}

Expected<void> GroupState::check_not_failed() const {
  if (state_ == MCAST_GROUP_FAILED) return mcast::fail(status_, reason_);
  return {};
}

Expected<void> GroupState::check_active() const {
  if (state_ == MCAST_GROUP_ACTIVE) return {};
  if (auto stands = check_not_failed(); !stands) return stands;
  return mcast::fail(MCAST_ERR_INVALID, "the group is not active yet: wait for mcast_group_test()");
}

// Of a leader or a sender, which may be faulty: queue pairs know five.
Expected<void> GroupState::check_path_mtu(std::uint32_t bytes) const {
  const bool is_known = bytes == 0 || wire::is_path_mtu(bytes);
  const bool fits = settings_.path_mtu == 0 || bytes <= settings_.path_mtu;
  if (is_known && fits) return {};
  const std::string own = std::to_string(settings_.path_mtu);
  return mcast::fail(MCAST_ERR_REJECTED,
                     "the group's path MTU of " + std::to_string(bytes) + " bytes is " +
                         (is_known ? "larger than this device's " + own
                                   : "none of 256, 512, 1024, 2048 and 4096") +
                         ": bring leader, members and switches to the same version");
}

bool GroupState::connect(RemoteEnd remote, GroupOutput& out) {
  if (state_ != MCAST_GROUP_REGISTERING) return false;
  if (const auto checked = check_path_mtu(remote.path_mtu); !checked) {
    fail(checked.error().status, MCAST_CAUSE_REGISTRATION, checked.error().text, out);
    return false;
  }
  if (remote.path_mtu == 0) remote.path_mtu = settings_.path_mtu;
  is_connecting_ = true;
  work_.connect(remote);
  out.actions.push_back({GroupAction::Kind::kConnect, remote});
  return true;
}

void GroupState::activate(bool host_sync, const wire::MrpPath& path, GroupOutput& out) {
  state_ = MCAST_GROUP_ACTIVE;
  work_.open(path.window);
  if (!host_sync) return;
  work_.sync().enable();
  out.actions.push_back({GroupAction::Kind::kCheckHostSync});
}

void GroupState::fail(mcast_status_t status, mcast_cause_t cause, std::string reason,
                      GroupOutput& out) {
  if (state_ == MCAST_GROUP_FAILED) return;
  state_ = MCAST_GROUP_FAILED;
  status_ = status;
  cause_ = cause;
  reason_ = std::move(reason);
  work_.sync().end();
  regions_.end();
  out.actions.push_back({GroupAction::Kind::kStop});
}

void GroupState::fail_with(const wire::Error& error, wire::MrpReject reject, GroupOutput& out) {
  if (state_ == MCAST_GROUP_ACTIVE) {
    return fail(MCAST_ERR_FABRIC, MCAST_CAUSE_LEADER, error.text, out);
  }
  const bool taken = reject == wire::MrpReject::kIdInUse;
  fail(taken ? MCAST_ERR_ID_IN_USE : status_of(error.code), MCAST_CAUSE_REGISTRATION, error.text,
       out);
}

}  // namespace cepheus::mcast
