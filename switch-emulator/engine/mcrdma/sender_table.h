// The sender groups that a switch holds (docs/protocol.md, "Sender groups").
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "switch-emulator/engine/mcrdma/ack_merge.h"
#include "switch-emulator/engine/mcrdma/bifurcation.h"
#include "wire/sender_group.h"

namespace cepheus::fabric {

// Names a group in data, by its virtual QPN, and in feedback, by its sender's.
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
  Qpn qpn;                    // 0: as it is, there is a branch behind
  std::uint8_t receiver = 0;  // its place in the list, if it has a QPN
};

struct SenderGroup {
  // As the last INSTALL said, with the receivers behind this switch; its share means nothing.
  wire::SenderGroupMessage said;
  PortId ingress;  // where it came from; one of several, behind equal-cost paths
  std::vector<Branch> branches;
  std::vector<Replica> rule;        // empty: the data goes on as it is
  std::unique_ptr<AckMerge> merge;  // at the sender's switch
  Instant last_seen;
  std::optional<Instant> orphaned;  // since when the sender's port is down
  std::uint64_t data_packets = 0, copies = 0;

  SenderKey key() const { return {said.sender(), said.virtual_qpn}; }
  SenderKey feedback_key() const { return {said.sender(), said.sender_qpn}; }
  // Is the QPN of that receiver rewritten here?
  bool rewrites(const Branch& branch) const { return !rule.empty() && branch.is_one(); }
  const wire::MrpRegion* find_region(std::uint8_t receiver, std::uint32_t number) const;
};

class SenderTable {
 public:
  SenderGroup* find(const SenderKey& key);
  // The group at this switch, its sender's, that feedback to that queue pair is about.
  SenderGroup* find_merge(const SenderKey& key);
  SenderGroup& add(const SenderKey& key);
  void set_merge(SenderGroup& group, std::unique_ptr<AckMerge> merge);
  void erase(const SenderKey& key);

  bool is_empty() const { return groups_.empty(); }
  std::size_t size() const { return groups_.size(); }
  std::size_t count_of(Ipv4 sender) const;
  template <typename F>
  void for_each(F&& f) const {
    for (const auto& [key, group] : groups_) f(*group);
  }
  // What has a rule: space of the table that data meets.
  std::size_t rule_count() const;
  void check_consistent() const;

 private:
  std::unordered_map<SenderKey, std::unique_ptr<SenderGroup>, SenderKeyHash> groups_;
  std::unordered_map<SenderKey, SenderGroup*, SenderKeyHash> merges_;  // by feedback_key()
};

}  // namespace cepheus::fabric
