// Ranks are grouped by host in the order of first appearance. Then each host's first rank that can
// lead moves to its front. If a host has none, multicast is impossible, and the reason names that
// host's first rank. If all ranks are on one host, there is no multicast, even if all can lead.
// A communicator of one rank is flat.
#include "collectives/core/placement.h"

#include <algorithm>
#include <map>

namespace cepheus::coll {

Placement Placement::of(const std::vector<Identity>& ranks) {
  Placement placement;
  std::map<std::uint64_t, std::size_t> hosts;  // by first appearance
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto [at, fresh] = hosts.emplace(ranks[r].host, hosts.size());
    if (fresh) placement.hosts.emplace_back();
    placement.hosts[at->second].push_back(static_cast<int>(r));
    placement.host_of.push_back(static_cast<int>(at->second));
  }
  if (placement.hosts.size() == 1 && ranks.size() > 1) {
    placement.shape = Shape::kOneHost;
    placement.reason = "all ranks are on one host";
    return placement;
  }
  const auto can_lead = [&](int rank) {
    return ranks[static_cast<std::size_t>(rank)].can_lead != 0;
  };
  for (std::vector<int>& host : placement.hosts) {
    const auto leader = std::find_if(host.begin(), host.end(), can_lead);
    if (leader == host.end()) {
      placement.reason = "rank " + std::to_string(host.front()) + ": " +
                         ranks[static_cast<std::size_t>(host.front())].reason;
      return placement;
    }
    std::rotate(host.begin(), leader, leader + 1);
  }
  placement.shape = placement.hosts.size() == ranks.size() ? Shape::kFlat : Shape::kHosts;
  return placement;
}

std::vector<int> Placement::leaders() const {
  std::vector<int> ranks;
  for (const std::vector<int>& host : hosts) ranks.push_back(host.front());
  return ranks;
}

// "= {}" would keep the memory.
void Placement::forget_ranks() {
  hosts = std::vector<std::vector<int>>();
  host_of = std::vector<int>();
}

}  // namespace cepheus::coll
