#include "switch-emulator/engine/roster.h"

#include <algorithm>
#include <numeric>

#include "switch-emulator/engine/check.h"

namespace cepheus::fabric {
namespace {

bool by_host(const Roster::Member& a, const Roster::Member& b) { return a.host < b.host; }

}  // namespace

// Where `host` is or would be among the first members.
std::size_t Roster::place_of(Ipv4 host, std::size_t among) const {
  const auto end = members_.begin() + static_cast<std::ptrdiff_t>(among);
  const auto at = std::lower_bound(members_.begin(), end, host,
                                   [](const Member& m, Ipv4 wanted) { return m.host < wanted; });
  return static_cast<std::size_t>(at - members_.begin());
}

void Roster::add(std::span<const Member> members) {
  const std::size_t known = members_.size();
  for (const Member& m : members) {
    const std::size_t at = place_of(m.host, known);
    if (at == known || members_[at].host != m.host) members_.push_back(m);
  }
  const auto fresh = members_.begin() + static_cast<std::ptrdiff_t>(known);
  std::stable_sort(fresh, members_.end(), by_host);
  members_.erase(std::unique(fresh, members_.end(),
                             [](const Member& a, const Member& b) { return a.host == b.host; }),
                 members_.end());
  for (auto m = fresh; m != members_.end(); ++m) note(m->port, true);
  std::inplace_merge(members_.begin(), fresh, members_.end(), by_host);
}

void Roster::note(PortId port, bool comes) {
  if (port.value() >= behind_.size()) behind_.resize(port.value() + 1u);
  comes ? ++behind_[port.value()] : --behind_[port.value()];
}

void Roster::remove(Ipv4 host) {
  const std::size_t at = place_of(host, members_.size());
  if (at == members_.size() || members_[at].host != host) return;
  owed_ -= members_[at].owed ? 1 : 0;
  ready_ -= members_[at].owed && members_[at].confirmed ? 1 : 0;
  note(members_[at].port, false);
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

const Roster::Member* Roster::find_behind(PortId port) const {
  const auto at = std::ranges::find(members_, port, &Member::port);
  return at == members_.end() ? nullptr : &*at;
}

void Roster::begin(wire::MrpType step) {
  if (step_ == step) return;
  step_ = step;
  for (Member& m : members_) m.confirmed = m.owed = false;
  owed_ = ready_ = 0;
}

void Roster::ask(std::size_t place) {
  Member& m = members_[place];
  if (m.owed) return;
  m.owed = true;
  ++owed_;
  ready_ += m.confirmed ? 1 : 0;
}

void Roster::ask(const Member& member) { ask(static_cast<std::size_t>(&member - members_.data())); }

void Roster::ask_all() {
  for (std::size_t i = 0; i < members_.size(); ++i) ask(i);
}

bool Roster::confirm(const wire::MrpMember& named, PortId port, bool host_sync) {
  const std::size_t at = place_of(named.host, members_.size());
  if (at == members_.size()) return false;
  Member& m = members_[at];
  if (m.host != named.host || m.qpn != named.qpn || m.port != port) return false;
  if (m.confirmed) return true;
  m.confirmed = true;
  m.host_sync = host_sync;
  ready_ += m.owed ? 1 : 0;
  return true;
}

void Roster::check_consistent() const {
  must(std::is_sorted(members_.begin(), members_.end(), by_host), "the roster is not sorted");
  std::size_t owed = 0, ready = 0;
  for (const Member& m : members_) {
    owed += m.owed ? 1 : 0;
    ready += m.owed && m.confirmed ? 1 : 0;
  }
  const auto behind = std::accumulate(behind_.begin(), behind_.end(), std::size_t{0});
  must(behind == members_.size(), "members behind ports are miscounted");
  must(owed == owed_ && ready == ready_, "confirmations are miscounted");
}

}  // namespace cepheus::fabric
