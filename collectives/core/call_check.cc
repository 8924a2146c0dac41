#include "collectives/core/call_check.h"

namespace cepheus::coll {

using Kind = ControlMessage::Kind;

bool CallCheck::is_due(const CallAtHand& own, Time now) {
  if (unit_ != own.unit) {
    unit_ = own.unit;
    since_ = now;
    called_ = false;
  }
  if (called_ || now < since_ + kTimeLimit) return false;
  called_ = true;
  return true;
}

void CallCheck::receive(int from, const ControlMessage& message) {
  std::optional<Heard>& heard = message.kind == Kind::kMistake ? heard_mistake_ : heard_called_;
  heard = Heard{from, message};
}

std::optional<CallCheck::Mistake> CallCheck::look(const CallAtHand& own) const {
  if (heard_mistake_ && heard_mistake_->message.unit == own.unit) {
    const Heard& heard = *heard_mistake_;
    return Mistake{Mistake::Kind::kReported, heard.from, heard.message.value, heard.message.reason};
  }
  if (!heard_called_ || heard_called_->message.unit != own.unit) return std::nullopt;
  const int from = heard_called_->from;
  const std::uint64_t bytes = heard_called_->message.value;
  if (from != own.root) return Mistake{Mistake::Kind::kRoot, from, bytes, ""};
  if (bytes != own.bytes) return Mistake{Mistake::Kind::kCount, from, bytes, ""};
  return std::nullopt;
}

}  // namespace cepheus::coll
