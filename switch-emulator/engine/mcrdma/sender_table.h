// The sender groups that a switch holds (docs/protocol.md, "Sender groups").
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "switch-emulator/engine/mcrdma/ack_merge.h"
#include "switch-emulator/engine/mcrdma/bifurcation.h"
#include "wire/sender_group.h"

namespace cepheus::fabric {

// Key of a group, in data and in feedback.
struct SenderKey {
  Ipv4 sender;
  Qpn qpn;
  friend bool operator==(const SenderKey&, const SenderKey&) = default;
};
struct SenderKeyHash {
  std::size_t operator()(const SenderKey& key) const {
    const auto both = std::uint64_t{key.sender.value()} << 32 | key.qpn.value();
    return static_cast<std::size_t>((both ^ both >> 29) * 0x9E3779B97F4A7C15ull >> 7);
  }
};

// A copy of the data for one branch.
struct Replica {
  Ipv4 destination;
  Qpn qpn;                    // 0: unchanged, because a branch follows
  std::uint8_t receiver = 0;  // its receiver's index in the list, if it has a QPN
};

// A switch's handling of a group's data with one destination address. Copies of the same data for
// different branches may pass one switch, and each has its own record.
struct SenderGroup {
  // The last INSTALL, with the receivers behind this switch; its share has no meaning here.
  wire::SenderGroupMessage installed;
  PortId ingress;  // ingress of the last INSTALL; one of several over equal-cost paths
  std::vector<Branch> branches;
  // Receivers of earlier INSTALLs that the last one does not name. Switches on the way to them may
  // hold records that this switch no longer refreshes.
  std::vector<wire::MrpMember> former;
  std::vector<Replica> rule;        // empty: the data goes on unchanged
  std::unique_ptr<AckMerge> merge;  // only at the sender's switch
  Instant last_seen;
  // No INSTALL since then, when the sender's port went down, or first came up again.
  std::optional<Instant> orphaned;
  bool port_came_up = false;  // ... and it did
  std::uint8_t tos = 0;       // of the sender's packets, without ECN
  Instant too_long_again{};   // a REJECT(too long) may be sent from then on
  std::uint64_t data_packets = 0, copies = 0;

  void note_install() {
    orphaned.reset();
    port_came_up = false;
  }
  // With their rule, for the installed receivers.
  void set_branches(std::vector<Branch> all);
  SenderKey key() const { return {installed.sender(), installed.virtual_qpn}; }
  // Whether that receiver's QPN is set here.
  bool rewrites(const Branch& branch) const { return !rule.empty() && branch.is_one(); }
  const wire::MrpRegion* find_region(std::uint8_t receiver, std::uint32_t number) const;
};

class SenderTable {
 public:
  // The record for data addressed to `addressed`; null if there is none.
  SenderGroup* find(const SenderKey& key, Ipv4 addressed);
  // The record of the sender's own switch, which merges feedback; null elsewhere.
  SenderGroup* find_merge(const SenderKey& key);
  SenderGroup& add(const SenderKey& key, Ipv4 addressed);
  void erase(const SenderGroup& group);
  // All records of a group for which `which(group)` is true.
  template <typename Which>
  void erase_if(const SenderKey& key, Which&& which);
  template <typename Which>
  bool any_of(const SenderKey& key, Which&& which) const;

  bool is_empty() const { return groups_.empty(); }
  std::size_t size() const { return size_; }
  std::size_t count_of(Ipv4 sender) const;
  template <typename F>
  void for_each(F&& f) const {
    for (const auto& [key, records] : groups_) {
      for (const auto& record : records) f(*record);
    }
  }
  void check_consistent() const;

 private:
  // Of one group, nearly always a single record.
  using Records = std::vector<std::unique_ptr<SenderGroup>>;

  std::unordered_map<SenderKey, Records, SenderKeyHash> groups_;
  std::size_t size_ = 0;
  std::unordered_map<Ipv4, std::size_t> of_sender_;  // numbers of records
};

template <typename Which>
void SenderTable::erase_if(const SenderKey& key, Which&& which) {
  const auto at = groups_.find(key);
  if (at == groups_.end()) return;
  const auto erased = std::erase_if(at->second, [&](const auto& r) { return which(*r); });
  if (at->second.empty()) groups_.erase(at);
  size_ -= erased;
  const auto of_sender = of_sender_.find(key.sender);
  if ((of_sender->second -= erased) == 0) of_sender_.erase(of_sender);
}

template <typename Which>
bool SenderTable::any_of(const SenderKey& key, Which&& which) const {
  const auto at = groups_.find(key);
  return at != groups_.end() &&
         std::ranges::any_of(at->second, [&](const auto& record) { return which(*record); });
}

}  // namespace cepheus::fabric
