#include "switch-emulator/engine/registration/roster.h"

#include "switch-emulator/engine/check.h"
#include "wire/situation.h"

namespace cepheus::fabric {

// Position of `host`, present or not, among the first members.
std::size_t Roster::place_of(Ipv4 host, std::size_t among) const {
  const auto end = members_.begin() + static_cast<std::ptrdiff_t>(among);
  const auto at = std::ranges::lower_bound(members_.begin(), end, host, {}, &Member::host);
  return static_cast<std::size_t>(at - members_.begin());
}

void Roster::add(std::span<const Member> members) {
  const std::size_t known = members_.size();
  for (const Member& m : members) {
    const std::size_t at = place_of(m.host, known);
    if (at == known || members_[at].host != m.host) members_.push_back(m);
  }
  const auto fresh = members_.begin() + static_cast<std::ptrdiff_t>(known);
  std::ranges::stable_sort(fresh, members_.end(), {}, &Member::host);
  members_.erase(std::unique(fresh, members_.end(),
                             [](const Member& a, const Member& b) { return a.host == b.host; }),
                 members_.end());
  for (auto m = fresh; m != members_.end(); ++m) count(*m);
  std::ranges::inplace_merge(members_, fresh, {}, &Member::host);
}

void Roster::count(const Member& member) {
  if (!member.by_trunk) return;
  auto trunk = std::ranges::find(trunks_, member.port, &Trunk::port);
  if (trunk == trunks_.end()) trunk = trunks_.insert(trunk, {member.port, false, 0, Ipv4(), Qpn()});
  ++trunk->members;
  if (trunk->members > 1 && trunk->host < member.host) return;
  trunk->host = member.host;
  trunk->qpn = member.qpn;
}

void Roster::remove(Ipv4 host) {
  for (Trunk& trunk : trunks_) {
    if (trunk.host != host) continue;
    CEPHEUS_SITUATION("the only named member behind a trunk is evicted");
    trunk.host = Ipv4();
  }
  const std::size_t at = place_of(host, members_.size());
  if (at == members_.size() || members_[at].host != host || members_[at].by_trunk) return;
  owed_ -= members_[at].owed ? 1 : 0;
  ready_ -= members_[at].owed && members_[at].confirmed ? 1 : 0;
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
}

const Roster::Member* Roster::find(Ipv4 host) const {
  const std::size_t at = place_of(host, members_.size());
  return at < members_.size() && members_[at].host == host ? &members_[at] : nullptr;
}

const Roster::Member* Roster::find(const wire::MrpMember& named) const {
  const Member* member = find(named.host);
  return member != nullptr && member->qpn == named.qpn ? member : nullptr;
}

std::optional<wire::MrpMember> Roster::one_behind(PortId trunk) const {
  const auto at = std::ranges::find(trunks_, trunk, &Trunk::port);
  if (at == trunks_.end() || at->host.is_unset()) return std::nullopt;
  return wire::MrpMember{at->host, at->qpn};
}

std::size_t Roster::count_behind(PortId trunk) const {
  const auto at = std::ranges::find(trunks_, trunk, &Trunk::port);
  return at == trunks_.end() ? 0 : at->members;
}

bool Roster::has_confirmed(PortId trunk) const {
  const auto at = std::ranges::find(trunks_, trunk, &Trunk::port);
  return at != trunks_.end() && at->has_confirmed;
}

// A host knows the MTU of its device, and no queue of the fabric.
void Roster::set_path(PortId port, const wire::MrpPath& path) {
  const auto trunk = std::ranges::find(trunks_, port, &Trunk::port);
  if (trunk != trunks_.end()) {
    trunk->path.narrow({path.mtu, 0});
    trunk->path.window = path.window;
  } else {
    const wire::MrpPath before = hosts_path_;
    hosts_path_.narrow({path.mtu, 0});
    if (hosts_path_ != before) least_host_ = port;
  }
}

wire::MrpPath Roster::path() const {
  wire::MrpPath least = hosts_path_;
  for (const Trunk& trunk : trunks_) least.narrow(trunk.path);
  return least;
}

void Roster::begin(wire::MrpType step) {
  if (step_ == step) return;
  const bool had_all_names = has_all_names();
  step_ = step;
  if (had_all_names && !has_all_names()) forget_names();
  for (Member& m : members_) m.confirmed = m.owed = false;
  for (Trunk& trunk : trunks_) trunk.has_confirmed = false;
  unsent_ = std::vector<Member>();
  owed_ = ready_ = expected_ = 0;
}

void Roster::forget_names() {
  nameless_ = std::erase_if(members_, [](const Member& m) { return m.by_trunk; });
  members_.shrink_to_fit();
  trunks_.shrink_to_fit();
}

void Roster::expect(std::size_t place) {
  Member& m = members_[place];
  if (m.owed) return;
  m.owed = true;
  ++owed_;
  ready_ += m.confirmed ? 1 : 0;
}

void Roster::expect(const Member& member) {
  expect(static_cast<std::size_t>(&member - members_.data()));
}

void Roster::expect_all() {
  for (std::size_t i = 0; i < members_.size(); ++i) expect(i);
  expect_nameless(nameless_);
}

bool Roster::confirm(const wire::MrpMember& named, PortId port, bool host_sync) {
  const std::size_t at = place_of(named.host, members_.size());
  if (at == members_.size() || members_[at].host != named.host) {
    const auto trunk = std::ranges::find(trunks_, port, &Trunk::port);
    if (nameless_ == 0 || trunk == trunks_.end()) {
      CEPHEUS_RARE_SITUATION("a CONFIRM names a member that the switch does not know");
      return false;
    }
    trunk->has_confirmed = true;
    add_unsent({named.host, named.qpn, port, 0, true, true, true, host_sync});
    return true;
  }
  Member& m = members_[at];
  if (m.qpn != named.qpn || m.port != port) return false;
  if (m.confirmed) return true;
  m.confirmed = true;
  m.host_sync = host_sync;
  ready_ += m.owed ? 1 : 0;
  return true;
}

void Roster::add_unsent(const Member& member) {
  if (expected_ > 0) --expected_;
  if (std::ranges::find(unsent_, member.host, &Member::host) != unsent_.end()) {
    CEPHEUS_SITUATION("a member behind a trunk confirms twice before its switch passes that on");
    return;
  }
  unsent_.push_back(member);
}

void Roster::check_consistent() const {
  must(std::ranges::is_sorted(members_, {}, &Member::host), "the roster is not sorted");
  std::size_t owed = 0, ready = 0, by_trunk = 0, behind = 0;
  for (const Member& m : members_) {
    owed += m.owed ? 1 : 0;
    ready += m.owed && m.confirmed ? 1 : 0;
    by_trunk += m.by_trunk ? 1 : 0;
  }
  for (const Trunk& trunk : trunks_) behind += trunk.members;
  must(behind == by_trunk + nameless_, "members behind trunks are miscounted");
  must(by_trunk == 0 || has_all_names(), "names behind trunks outlive CONNECT");
  must(nameless_ == 0 || !has_all_names(), "REGISTER has lost names");
  must(owed == owed_ && ready == ready_, "confirmations are miscounted");
  must(unsent_.size() <= 2 * wire::MrpMessage::kMaxMembers, "names behind trunks pile up");
}

}  // namespace cepheus::fabric
