#include "fabric-sim/checked/reductions/reduction_ledger.h"

#include <algorithm>
#include <cctype>

#include "wire/splitmix.h"

namespace cepheus::sim {

ReductionLedger::ReductionLedger(const ReductionPlan& plan, Findings& findings)
    : plan_(plan), findings_(findings), members_(plan.group.members.size()) {}

std::string ReductionLedger::name(std::size_t member) const {
  return "member " + std::to_string(member) + " of " + plan_.group.id.to_string();
}

void ReductionLedger::on_active(std::size_t member, bool is_flat) {
  members_[member].is_active = true;
  if (!is_flat_) is_flat_ = is_flat;
  if (is_flat != *is_flat_) {
    findings_.report(Invariant::kDelivery, name(member) + " has learnt that its group is " +
                                               (is_flat ? "" : "not ") + "flat, unlike others");
  }
}

void ReductionLedger::find_pairs_by(std::vector<wire::Ipv4> addresses, FindPairs find) {
  addresses_ = std::move(addresses);
  find_pairs_ = std::move(find);
}

void ReductionLedger::look_for_pairs() {
  if (has_pairs() || !is_flat_ || !find_pairs_) return;
  if (const auto over_tree = find_pairs_()) set_pairs(*over_tree);
}

void ReductionLedger::set_pairs(const MemberPairs& over_tree) {
  if (over_tree.switches == 1 && !is_flat_.value_or(false)) {
    findings_.report(Invariant::kDelivery, "a group of one switch is not flat");
  }
  pairs_ = is_flat_.value_or(false) ? MemberPairs::by_address(addresses_) : over_tree;
}

bool ReductionLedger::has_values(std::size_t operation) const {
  const auto& kind = plan_.operations[operation].kind;
  return kind.operation != mcast::ReductionUnits::kOr.operation ||
         kind.type != mcast::ReductionUnits::kOr.type;
}

std::uint64_t ReductionLedger::value(std::size_t member, std::size_t operation,
                                     std::uint64_t index) const {
  const std::uint64_t group = std::uint64_t{plan_.group.id.value()} << 16 | plan_.group.epoch;
  const mcast::ReductionUnits::Kind& kind = plan_.operations[operation].kind;
  const std::uint64_t random = wire::splitmix(group << 24 ^ operation << 12 ^ member, index);
  // One value of a member that is special would rule the result of all.
  const bool is_near = depends_on_pairs(kind) && wire::splitmix(group ^ operation, index) % 4 != 0;
  return is_near ? drawn_near_value(kind.type, random) : drawn_value(kind.type, random);
}

std::uint64_t ReductionLedger::reduced(std::size_t operation, std::uint64_t index,
                                       std::optional<std::size_t> without) const {
  if (depends_on_pairs(plan_.operations[operation].kind)) {
    std::vector<std::uint64_t> values;
    for (std::size_t i = 0; i < members(); ++i) values.push_back(value(i, operation, index));
    for (const auto& [left, right] : pairs_->pairs)
      values[left] = reduced_value(plan_.operations[operation].kind, values[left], values[right]);
    return values[pairs_->first];
  }
  std::optional<std::uint64_t> all;
  for (std::size_t member = 0; member < members(); ++member) {
    if (member == without) continue;
    const std::uint64_t one = value(member, operation, index);
    all = all ? reduced_value(plan_.operations[operation].kind, *all, one) : one;
  }
  return all.value_or(0);
}

std::uint8_t ReductionLedger::result(std::size_t operation, std::uint64_t at) const {
  if (has_values(operation)) {
    const mcast::ReductionUnits::Kind& kind = plan_.operations[operation].kind;
    const std::uint32_t bytes = plan_.operations[operation].bytes;
    results_.resize(plan_.operations.size());
    std::vector<std::uint8_t>& result = results_[operation];
    const std::size_t size = arithmetic::size_of(kind.type);
    for (std::uint64_t i = result.size() / size; i < bytes / size; ++i) {
      const std::uint64_t all = reduced(operation, i, std::nullopt);
      for (std::size_t k = 0; k < size; ++k) {
        result.push_back(static_cast<std::uint8_t>(all >> (8 * k)));
      }
    }
    return result[at];
  }
  const std::uint64_t group = std::uint64_t{plan_.group.id.value()} << 16 | plan_.group.epoch;
  return static_cast<std::uint8_t>(wire::splitmix(group << 16 ^ operation, at) | 1);
}

std::uint8_t ReductionLedger::contribution(std::size_t member, std::size_t operation,
                                           std::uint64_t at) const {
  if (has_values(operation)) {
    const std::size_t size = arithmetic::size_of(plan_.operations[operation].kind.type);
    return static_cast<std::uint8_t>(value(member, operation, at / size) >> (8 * (at % size)));
  }
  const std::uint8_t whole = result(operation, at);
  if (at % 3 != 0) return at % members() == member ? whole : std::uint8_t{0};
  int bits = 0;
  for (unsigned bit = 0; bit < 8; ++bit) {
    if ((at + bit) % members() == member) bits |= 1 << bit;
  }
  return static_cast<std::uint8_t>(whole & bits);
}

bool ReductionLedger::is_whole(std::size_t operation, std::uint64_t bytes) const {
  return bytes % arithmetic::size_of(plan_.operations[operation].kind.type) == 0;
}

// The first wrong byte of whole values.
std::optional<std::size_t> ReductionLedger::first_wrong(std::size_t operation, std::uint64_t offset,
                                                        std::span<const std::uint8_t> data) {
  if (is_known(operation) && (!hostile_ || !hostile_->spoils)) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (data[i] != result(operation, offset + i)) return i;
    }
    return std::nullopt;
  }
  const std::size_t size = arithmetic::size_of(plan_.operations[operation].kind.type);
  for (std::size_t i = 0; i < data.size(); i += size) {
    if (!may_be_spoilt(operation, offset + i, data.subspan(i, size))) return i;
  }
  return std::nullopt;
}

// A hostile member may contribute any value, with all members' results alike. No result shows which,
// if it depends on pairs.
bool ReductionLedger::may_be_spoilt(std::size_t operation, std::uint64_t at,
                                    std::span<const std::uint8_t> value) {
  const ReductionOperation& one = plan_.operations[operation];
  spoilt_.resize(plan_.operations.size());
  spoilt_[operation].resize(one.bytes);
  std::uint64_t got = 0, honest = 0;
  for (std::size_t k = 0; k < value.size(); ++k) {
    got |= std::uint64_t{value[k]} << (8 * k);
    std::optional<std::uint8_t>& first = spoilt_[operation][at + k];
    if (!first) first = value[k];
    if (value[k] != *first) return false;
  }
  if (depends_on_pairs(one.kind)) return true;
  if (has_values(operation)) {
    honest = reduced(operation, at / value.size(), hostile_->member);
  } else {
    for (std::size_t member = 0; member < members(); ++member) {
      if (!is_hostile(member)) honest |= contribution(member, operation, at);
    }
  }
  return may_result(one.kind, honest, got);
}

void ReductionLedger::on_part(std::size_t member, std::size_t operation, std::uint64_t offset,
                              std::span<const std::uint8_t> data) {
  Member& own = members_[member];
  if (is_hostile(member)) {
    ++own.parts;
    return;
  }
  const std::string part = " of operation " + std::to_string(operation);
  for (std::size_t other = 0; other < members(); ++other) {
    if (members_[other].contributed > own.parts || is_hostile(other)) continue;
    return findings_.report(Invariant::kCompletion,
                            name(member) + " has a unit of the result" + part + " before member " +
                                std::to_string(other) + " has contributed to it");
  }
  ++own.parts;
  if (operation != own.ended || offset != own.received) {
    return on_wrong(member, "byte " + std::to_string(offset) + part + " comes after " +
                                std::to_string(own.received) + " bytes of operation " +
                                std::to_string(own.ended));
  }
  own.received += data.size();
  if (!is_known(operation)) look_for_pairs();
  // A switch may have restarted since.
  if (!is_known(operation) && !may_fail()) {
    return on_wrong(member, "no switch shows the tree of this result" + part);
  }
  if (!is_whole(operation, data.size()))
    return on_wrong(member, "a part" + part + " has half a value");
  if (const auto wrong = first_wrong(operation, offset, data)) {
    on_wrong(member, "byte " + std::to_string(offset + *wrong) + part + " is wrong");
  }
}

void ReductionLedger::on_ended(std::size_t member, std::size_t operation) {
  Member& own = members_[member];
  const std::uint32_t bytes = plan_.operations[operation].bytes;
  const bool is_judged = !is_hostile(member);
  if (is_judged && (operation != own.ended || own.received != bytes)) {
    on_wrong(member, "operation " + std::to_string(operation) + " of " + std::to_string(bytes) +
                         " bytes ends after " + std::to_string(own.received) +
                         " bytes of operation " + std::to_string(own.ended));
  }
  ++own.ended;
  own.received = 0;
}

void ReductionLedger::check_kept(std::size_t member, std::size_t operation, std::uint64_t offset,
                                 std::span<const std::uint8_t> data, const std::string& where) {
  if (is_hostile(member)) return;
  if (const auto wrong = first_wrong(operation, offset, data)) {
    on_wrong(member, "byte " + std::to_string(offset + *wrong) + " of operation " +
                         std::to_string(operation) + " is no longer in " + where);
  }
}

void ReductionLedger::on_wrong(std::size_t member, const std::string& what) {
  members_[member].has_failed = true;
  if (is_hostile(member)) return;
  findings_.report(Invariant::kDelivery, name(member) + ": " + what);
}

// The other members learn of the failure from their leader only. If the leader itself has failed,
// they may get no answer.
void ReductionLedger::on_failed(std::size_t member, const std::string& why) {
  members_[member].has_failed = true;
  const bool is_excused = may_fail_ || is_hostile(member) || (hostile_ && is_named(member, why));
  if (!is_excused) findings_.report(Invariant::kLiveness, name(member) + ": " + why);
  if (member == plan_.group.leader) was_struck_ = true;
}

void ReductionLedger::on_gave_up(std::size_t member, const std::string& why) {
  if (!was_struck_ && !is_hostile(member)) {
    findings_.report(Invariant::kLiveness, name(member) + " gave its group up: " + why);
  }
  on_failed(member, why);
}

// The leader's reason names a hostile member. The others learn only that the group has ended.
bool ReductionLedger::is_named(std::size_t member, const std::string& why) const {
  const std::size_t leader = plan_.group.leader;
  if (member != leader || is_hostile(leader)) return true;
  for (std::size_t at = 0; (at = why.find(hostile_->address, at)) != why.npos; ++at) {
    const std::size_t end = at + hostile_->address.size();
    if (end == why.size() || std::isdigit(why[end]) == 0) return true;  // else a longer address
  }
  return false;
}

bool ReductionLedger::is_done(const Member& member) const {
  return member.is_dead || is_hostile(static_cast<std::size_t>(&member - members_.data())) ||
         member.has_failed || (was_struck_ && !member.is_active) ||
         member.ended == plan_.operations.size();
}

bool ReductionLedger::is_done() const {
  return std::ranges::all_of(members_, [&](const Member& one) { return is_done(one); });
}

void ReductionLedger::check_done() const {
  for (std::size_t member = 0; member < members(); ++member) {
    if (is_done(members_[member])) continue;
    return findings_.report(Invariant::kLiveness, name(member) + " has ended " +
                                                      std::to_string(ended(member)) + " of " +
                                                      std::to_string(plan_.operations.size()) +
                                                      " operations, and has not failed");
  }
}

}  // namespace cepheus::sim
