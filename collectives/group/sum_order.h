// The pairs in which a group of reductions adds floating-point numbers. Its leader finds them when the group
// comes up, and sends them to all members, so that all decide alike on the way of a sum.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arithmetic/combine.h"
#include "collectives/core/reproducible.h"

namespace cepheus::coll {

enum class SumOrder : std::uint32_t {
  kUnknown,  // no group has come up yet
  kNone,     // the group adds none
  kTree,     // the pairs of its switches
  kRank      // ... which are those by rank
};

// The group serves the sums of a user that wants these bits. While its order is unknown, a call sets the
// group up.
constexpr bool serves_sums(SumOrder order, Reproducible wanted) {
  if (order == SumOrder::kNone) return false;
  return wanted != Reproducible::kRank || order != SumOrder::kTree;
}
// Messages give the same bits, or the user takes others: the ways may be compared.
constexpr bool may_compare_sums(SumOrder order, Reproducible wanted) {
  return wanted != Reproducible::kTree || order == SumOrder::kRank;
}

struct MemberRecord;
class Team;

// ... of a session's groups, one after the other.
class GroupSums {
 public:
  // `are_wanted`: its groups shall add floating-point numbers.
  explicit GroupSums(bool are_wanted) : are_wanted_(are_wanted) {}

  bool are_wanted() const { return are_wanted_; }
  // A group has come up. `why`: it does not add by rank.
  void renew(SumOrder order, const char* why, const Team& team);
  // The network may serve a reduction of values, and its way may be compared with messages.
  bool may_serve(const arithmetic::Combiner& combiner) const;
  bool may_compare(const arithmetic::Combiner& combiner) const;
  const std::string& why_not() const { return why_not_; }

 private:
  const bool are_wanted_;
  SumOrder order_ = SumOrder::kUnknown;  // of the group, or the last group
  std::string why_not_ = "its group adds no floating-point numbers";
};

constexpr const char* kNotFlat =
    "the tree of its group's switches is not flat, so they do not add by rank";
// The reason why addresses do not ascend with ranks; "" if they do.
std::string why_not_ascending(const std::vector<MemberRecord>& records, const Team& team);

}  // namespace cepheus::coll
