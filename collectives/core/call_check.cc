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
  std::optional<Noted>& noted = message.kind == Kind::kMistake ? noted_mistake_ : noted_call_;
  noted = Noted{from, message};
}

std::optional<CallCheck::Mistake> CallCheck::look(const CallAtHand& own) const {
  if (noted_mistake_ && noted_mistake_->message.unit == own.unit) {
    const Noted& noted = *noted_mistake_;
    return Mistake{Mistake::Kind::kReported, noted.from, noted.message.value, noted.message.reason};
  }
  if (!noted_call_ || noted_call_->message.unit != own.unit) return std::nullopt;
  const int from = noted_call_->from;
  const std::uint64_t bytes = noted_call_->message.value;
  if (from != own.root) return Mistake{Mistake::Kind::kRoot, from, bytes, ""};
  if (bytes != own.bytes) return Mistake{Mistake::Kind::kCount, from, bytes, ""};
  return std::nullopt;
}

}  // namespace cepheus::coll
