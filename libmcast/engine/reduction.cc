#include "libmcast/engine/reduction.h"

#include <algorithm>
#include <string>

#include "arithmetic/contribution_text.h"
#include "wire/situation.h"

namespace cepheus::mcast {

void ReductionUnits::start(Operation operation, const Kind& kind, std::uint64_t bytes,
                           Place place) {
  assert(bytes % arithmetic::size_of(kind.type) == 0);
  Pending pending{operation, kind, end_, bytes, place == Place::kSlots, 0, 0};
  end_ = end_of(pending);
  // The last W results stay in the ring when the operation has ended.
  if (place == Place::kApart && end_ - pending.first > window_) {
    pending.direct_from = std::max(pending.first, receives_);
    pending.direct_to = end_ - window_;
  }
  operations_.push_back(pending);
  find_receiving();
}

bool ReductionUnits::are_receives_due() const {
  const std::uint64_t due = results_ + window_ - receives_;
  if (due == 0) return false;
  const bool is_between = operations_.empty() || operations_.front().first == results_;
  return is_between || results_ == contributed_ || due >= quarter_of(window_);
}

std::optional<ReductionUnits::Receive> ReductionUnits::next_receive() const {
  if (receives_ >= results_ + window_) return std::nullopt;
  Receive receive;
  receive.slot = slot_of(receives_);
  if (receiving_ == operations_.size()) return receive;
  const Pending& pending = operations_[receiving_];
  if (receives_ < pending.direct_from || receives_ >= pending.direct_to) return receive;
  const Part part = part_of(pending, receives_);
  return Receive{part.slot, true, part.operation, part.offset, part.bytes};
}

void ReductionUnits::on_receive_posted() {
  assert(receives_ < results_ + window_);
  ++receives_;
  find_receiving();
}

void ReductionUnits::find_receiving() {
  while (receiving_ < operations_.size() && receives_ >= end_of(operations_[receiving_])) {
    ++receiving_;
  }
}

ReductionUnits::Part ReductionUnits::part_of(const Pending& pending, std::uint64_t unit) const {
  const Kind& kind = pending.kind;
  Part part;
  part.operation = pending.name;
  part.slot = slot_of(unit);
  part.offset = (unit - pending.first) * unit_;
  part.bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(unit_, pending.bytes - part.offset));
  part.send = static_cast<std::uint32_t>(unit) & (2u * window_ - 1);
  part.is_last = unit + 1 == end_of(pending);
  part.is_direct = unit >= pending.direct_from && unit < pending.direct_to;
  part.imm = wire::ReductionImm{static_cast<std::uint8_t>(kind.operation),
                                static_cast<std::uint8_t>(kind.type),
                                static_cast<std::uint8_t>(epoch_), static_cast<std::uint16_t>(unit)}
                 .value();
  return part;
}

std::optional<ReductionUnits::Part> ReductionUnits::next_contribution() const {
  if (contributed_ == end_) return std::nullopt;
  if (needs_receive()) {
    CEPHEUS_SITUATION("a contribution waits for the result that gives it credit");
    return std::nullopt;
  }
  const Pending& pending = operations_[sending_];
  const std::uint32_t most = pending.has_slots ? window_ : most_sends(window_);
  if (contributed_ >= sends_done_ + most) {
    CEPHEUS_SITUATION("a contribution has credit, and waits for an acknowledgement");
    return std::nullopt;
  }
  return part_of(pending, contributed_);
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
    --receiving_;
  }
  return part;
}

}  // namespace cepheus::mcast
