#include "fabric-sim/checked/reductions/reduction_ledger.h"

#include <algorithm>

#include "wire/splitmix.h"

namespace cepheus::sim {

ReductionLedger::ReductionLedger(const ReductionPlan& plan, Findings& findings)
    : plan_(plan), findings_(findings), members_(plan.group.members.size()) {}

std::string ReductionLedger::name(std::size_t member) const {
  return "member " + std::to_string(member) + " of " + plan_.group.id.to_string();
}

std::uint8_t ReductionLedger::result(std::size_t operation, std::uint64_t at) const {
  return static_cast<std::uint8_t>(wire::splitmix(operation, at) | 1);
}

std::uint8_t ReductionLedger::contribution(std::size_t member, std::size_t operation,
                                           std::uint64_t at) const {
  return at % members() == member ? result(operation, at) : std::uint8_t{0};
}

void ReductionLedger::on_begun(std::size_t member) { ++members_[member].begun; }

void ReductionLedger::on_part(std::size_t member, std::size_t operation, std::uint64_t offset,
                              std::span<const std::uint8_t> data) {
  for (std::size_t other = 0; other < members(); ++other) {
    if (members_[other].begun > operation) continue;
    return findings_.report(Invariant::kCompletion, name(member) + " has a result of operation " +
                                                        std::to_string(operation) +
                                                        ", which member " + std::to_string(other) +
                                                        " has not begun");
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] == result(operation, offset + i)) continue;
    return findings_.report(Invariant::kDelivery,
                            name(member) + ": byte " + std::to_string(offset + i) +
                                " of operation " + std::to_string(operation) + " is wrong");
  }
}

void ReductionLedger::on_ended(std::size_t member, std::size_t operation) {
  if (operation != members_[member].ended) {
    findings_.report(Invariant::kDelivery, name(member) + " has ended operation " +
                                               std::to_string(operation) + " before an older one");
  }
  ++members_[member].ended;
}

void ReductionLedger::on_failed(std::size_t member, const std::string& why) {
  members_[member].has_failed = true;
  if (!may_fail_) findings_.report(Invariant::kLiveness, name(member) + ": " + why);
}

bool ReductionLedger::is_done(const Member& member) const {
  if (member.is_dead || member.has_failed) return true;
  return member.ended == (may_fail_ ? member.begun : plan_.operations.size());
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
