#include "libmcast/engine/reduction.h"

#include <algorithm>
#include <string>

#include "arithmetic/contribution_text.h"
#include "wire/situation.h"

namespace cepheus::mcast {

void ReductionUnits::start(Operation operation, const Kind& kind, std::uint64_t bytes) {
  assert(bytes % arithmetic::size_of(kind.type) == 0);
  operations_.push_back({operation, kind, end_, bytes});
  end_ += units_of(bytes);
}

std::optional<std::uint32_t> ReductionUnits::next_receive() const {
  if (receives_ >= results_ + window_) return std::nullopt;
  return slot_of(receives_);
}

ReductionUnits::Part ReductionUnits::part_of(const Pending& pending, std::uint64_t unit) const {
  const Kind& kind = pending.kind;
  Part part;
  part.operation = pending.name;
  part.slot = slot_of(unit);
  part.offset = (unit - pending.first) * unit_;
  part.bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(unit_, pending.bytes - part.offset));
  part.is_last = unit + 1 == pending.first + units_of(pending.bytes);
  part.imm = wire::ReductionImm{static_cast<std::uint8_t>(kind.operation),
                                static_cast<std::uint8_t>(kind.type),
                                static_cast<std::uint8_t>(epoch_), static_cast<std::uint16_t>(unit)}
                 .value();
  return part;
}

std::optional<ReductionUnits::Part> ReductionUnits::next_contribution() const {
  const bool has_slot = contributed_ < sends_done_ + window_;
  if (contributed_ == end_) return std::nullopt;
  if (needs_receive()) {
    CEPHEUS_SITUATION("a contribution waits for the result that gives it credit");
    return std::nullopt;
  }
  if (!has_slot) {
    CEPHEUS_SITUATION("a contribution has credit, and waits for its slot");
    return std::nullopt;
  }
  return part_of(operations_[sending_], contributed_);
}

void ReductionUnits::on_contributed() {
  const Part part = part_of(operations_[sending_], contributed_);
  ++contributed_;
  if (part.is_last) ++sending_;
}

wire::Result<ReductionUnits::Part> ReductionUnits::on_result(std::uint32_t imm,
                                                             std::uint32_t bytes) {
  if (results_ == contributed_) {
    return wire::invalid(
        "a result came before this member's contribution: the switches and this "
        "library are of different versions");
  }
  const Pending pending = operations_.front();
  const Part part = part_of(pending, results_);
  const auto got = wire::ReductionImm::from(imm), due = wire::ReductionImm::from(part.imm);
  if (got.unit != due.unit || got.epoch != due.epoch) {
    return wire::invalid("a result of unit " + std::to_string(got.unit) + " came, not of unit " +
                         std::to_string(due.unit) +
                         ": the switches and this library are of different versions");
  }
  if (got.what() != due.what() || bytes != part.bytes) {
    return wire::invalid("unit " + std::to_string(results_) + " has a result of " +
                         arithmetic::contribution_text(got.operation, got.type, bytes) +
                         ", not of " +
                         arithmetic::contribution_text(due.operation, due.type, part.bytes) +
                         ": the members have called different reductions");
  }
  ++results_;
  if (part.is_last) {
    if (sending_ > 1) CEPHEUS_SITUATION("a reduction ends while later ones are under way");
    operations_.pop_front();
    --sending_;
  }
  return part;
}

}  // namespace cepheus::mcast
