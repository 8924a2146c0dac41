// The members of a group as its leader knows them, and those that have confirmed the present step.
// Evicted members are not among them.
#pragma once

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "wire/mrp.h"
#include "wire/types.h"

namespace cepheus::mrp {

class MemberList {
 public:
  MemberList() = default;
  // Sorted by host, each host once.
  explicit MemberList(std::vector<wire::MrpMember> sorted) : members_(std::move(sorted)) {
    confirmed_.assign(members_.size(), false);
    missing_ = members_.size();
  }

  std::size_t size() const { return members_.size(); }
  const std::vector<wire::MrpMember>& all() const { return members_; }
  const wire::MrpMember& operator[](std::size_t i) const { return members_[i]; }
  // size() if it is none.
  std::size_t find(wire::Ipv4 host) const {
    const auto at = std::ranges::lower_bound(members_, host, {}, &wire::MrpMember::host);
    const bool found = at != members_.end() && at->host == host;
    return found ? static_cast<std::size_t>(at - members_.begin()) : members_.size();
  }
  bool has(wire::Ipv4 host) const { return find(host) < members_.size(); }
  void erase(std::size_t i) {
    if (!confirmed_[i]) --missing_;
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(i));
    confirmed_.erase(confirmed_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // A new step: `leader` needs no CONFIRM.
  void expect_confirmations(wire::Ipv4 leader) {
    confirmed_.assign(members_.size(), false);
    missing_ = members_.size();
    confirm(find(leader));
  }
  bool has_confirmed(std::size_t i) const { return confirmed_[i]; }
  void confirm(std::size_t i) {  // once in a step
    assert(i < members_.size() && !confirmed_[i]);
    confirmed_[i] = true;
    --missing_;
  }
  std::size_t missing_count() const { return missing_; }
  std::vector<wire::MrpMember> missing() const {
    std::vector<wire::MrpMember> list;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!confirmed_[i]) list.push_back(members_[i]);
    }
    return list;
  }

  void check_consistent() const {
#ifndef NDEBUG
    assert(confirmed_.size() == members_.size());
    // Counted where a step begins or ends only: at every confirmation it would be the square.
    if (missing_ == 0 || missing_ + 1 == members_.size()) {
      const auto unconfirmed = std::count(confirmed_.begin(), confirmed_.end(), false);
      assert(missing_ == static_cast<std::size_t>(unconfirmed));
    }
#endif
  }

 private:
  std::vector<wire::MrpMember> members_;
  std::vector<bool> confirmed_;
  std::size_t missing_ = 0;
};

}  // namespace cepheus::mrp
