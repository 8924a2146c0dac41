#include "fabric-sim/checked/reductions/reduction_ledger.h"

#include <algorithm>
#include <cctype>

#include "fabric-sim/checked/reductions/values.h"
#include "wire/splitmix.h"

namespace cepheus::sim {

ReductionLedger::ReductionLedger(const ReductionPlan& plan, Findings& findings)
    : plan_(plan), findings_(findings), members_(plan.group.members.size()) {}

std::string ReductionLedger::name(std::size_t member) const {
  return "member " + std::to_string(member) + " of " + plan_.group.id.to_string();
}

bool ReductionLedger::has_values(std::size_t operation) const {
  const auto& kind = plan_.operations[operation].kind;
  return kind.operation != mcast::ReductionUnits::kOr.operation ||
         kind.type != mcast::ReductionUnits::kOr.type;
}

std::uint64_t ReductionLedger::value(std::size_t member, std::size_t operation,
                                     std::uint64_t index) const {
  const std::uint64_t group = std::uint64_t{plan_.group.id.value()} << 16 | plan_.group.epoch;
  return drawn_value(plan_.operations[operation].kind.type,
                     wire::splitmix(group << 24 ^ operation << 12 ^ member, index));
}

std::uint8_t ReductionLedger::result(std::size_t operation, std::uint64_t at) const {
  if (has_values(operation)) {
    const auto& [kind, bytes] = plan_.operations[operation];
    results_.resize(plan_.operations.size());
    std::vector<std::uint8_t>& result = results_[operation];
    const std::size_t size = arithmetic::size_of(kind.type);
    for (std::uint64_t i = result.size() / size; i < bytes / size; ++i) {
      std::uint64_t all = value(0, operation, i);
      for (std::size_t member = 1; member < members(); ++member) {
        all = reduced_value(kind, all, value(member, operation, i));
      }
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

// Bits of a hostile member may be added, to all members' results alike.
bool ReductionLedger::is_right(std::size_t operation, std::uint64_t at, std::uint8_t byte) {
  if (!hostile_ || !hostile_->spoils) return byte == result(operation, at);
  std::uint8_t honest = 0;
  const bool is_or = !has_values(operation);
  for (std::size_t member = 0; member < members(); ++member) {
    if (is_or && !is_hostile(member)) honest |= contribution(member, operation, at);
  }
  spoilt_.resize(plan_.operations.size());
  spoilt_[operation].resize(plan_.operations[operation].bytes);
  std::optional<std::uint8_t>& first = spoilt_[operation][at];
  if (!first) first = byte;
  return (byte & honest) == honest && byte == *first;
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
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (is_right(operation, offset + i, data[i])) continue;
    return on_wrong(member, "byte " + std::to_string(offset + i) + part + " is wrong");
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
