#include "collectives/group/sum_order.h"

#include <arpa/inet.h>

#include <algorithm>

#include "collectives/core/parameters.h"
#include "collectives/group/team_lane.h"
#include "wire/types.h"

namespace cepheus::coll {

void GroupSums::renew(SumOrder order, const char* why, const Team& team) {
  order_ = order;
  why_not_ = why;
  if (!are_wanted_ || !team.is_leader()) return;
  const bool is_served = serves_sums(order, parameters().chosen_reproducible());
  const char* const way = !is_served                 ? "by messages between ranks: "
                          : order == SumOrder::kRank ? "in the network, in pairs by rank"
                                                     : "in the network, in pairs of its tree: ";
  host::log(1, "cepheus: %s: long floating-point sums %s%s", team.name().c_str(), way, why);
}

bool GroupSums::may_serve(const arithmetic::Combiner& combiner) const {
  if (!combiner.depends_on_pairs()) return true;
  return are_wanted_ && serves_sums(order_, parameters().chosen_reproducible());
}

bool GroupSums::may_compare(const arithmetic::Combiner& combiner) const {
  return !combiner.depends_on_pairs() ||
         may_compare_sums(order_, parameters().chosen_reproducible());
}

std::string why_not_ascending(const std::vector<MemberRecord>& records, const Team& team) {
  const auto address = [](const MemberRecord& record) { return ntohl(record.member.ipv4); };
  const auto first = std::ranges::adjacent_find(records, std::ranges::greater_equal(), address);
  if (first == records.end()) return "";
  const auto text = [&](std::vector<MemberRecord>::const_iterator it) {
    return "rank " + std::to_string(team.rank_of(static_cast<int>(it - records.begin()))) +
           " has " + wire::Ipv4(address(*it)).to_string();
  };
  return "addresses do not ascend with ranks: " + text(first) + ", " + text(std::next(first)) +
         " (" + host::parameter("reproducible") + ")";
}

}  // namespace cepheus::coll
