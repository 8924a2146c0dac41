// A row of kTransitions holds for all services; attributes_of() removes those that a service lacks.
// From any state RESET and ERR need no attribute and allow none. Reliable connections have no SQE.
// An attribute that is neither required nor optional is refused, and so is a value out of range.
// Nothing is changed here.
#include "nic-emulator/engine/qp_transitions.h"

#include <array>
#include <utility>

namespace cepheus::rnic {
namespace {

struct Transition {
  QpState from;
  QpState to;
  std::uint32_t required;
  std::uint32_t optional;
};

constexpr std::uint32_t kAlways = kAttrState | kAttrCurrentState;
constexpr std::uint32_t kTunable = kAttrAccess | kAttrQkey | kAttrMinRnrTimer;

// Attributes of the service (IBTA table 91). The rows below hold for all services.
constexpr std::uint32_t attributes_of(QpType type) {
  constexpr std::uint32_t kAll = kAttrState | kAttrCurrentState | kAttrPathMtu | kAttrRemoteQpn |
                                 kAttrRqPsn | kAttrSqPsn | kAttrAddress | kAttrAccess |
                                 kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrMinRnrTimer |
                                 kAttrMaxRdAtomic | kAttrMaxDestRdAtomic | kAttrDrainedEvent;
  switch (type) {
    case QpType::kRc:
      return kAll;
    case QpType::kUc:
      return kAll & ~(kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrMinRnrTimer |
                      kAttrMaxRdAtomic | kAttrMaxDestRdAtomic);
    case QpType::kUd:
      return kAttrState | kAttrCurrentState | kAttrSqPsn | kAttrQkey | kAttrDrainedEvent;
  }
  return 0;
}

// Any state may go to RESET and ERR without attributes; those rows are not listed.
constexpr std::array kTransitions{
    Transition{QpState::kReset, QpState::kInit, kAttrAccess | kAttrQkey, 0},
    Transition{QpState::kInit, QpState::kInit, 0, kAttrAccess | kAttrQkey},
    Transition{QpState::kInit, QpState::kRtr,
               kAttrAddress | kAttrPathMtu | kAttrRemoteQpn | kAttrRqPsn | kAttrMinRnrTimer,
               kAttrAccess | kAttrQkey | kAttrMaxDestRdAtomic},
    Transition{QpState::kRtr, QpState::kRts,
               kAttrSqPsn | kAttrTimeout | kAttrRetryCount | kAttrRnrRetry,
               kTunable | kAttrMaxRdAtomic},
    Transition{QpState::kRts, QpState::kRts, 0, kTunable},
    Transition{QpState::kRts, QpState::kSqd, 0, kAttrDrainedEvent},
    Transition{QpState::kSqd, QpState::kRts, 0, kTunable},
    Transition{QpState::kSqe, QpState::kRts, 0, kTunable},
    Transition{QpState::kSqd, QpState::kSqd, 0,
               kTunable | kAttrAddress | kAttrTimeout | kAttrRetryCount | kAttrRnrRetry |
                   kAttrMaxRdAtomic | kAttrMaxDestRdAtomic},
};

constexpr std::array<std::pair<std::uint32_t, const char*>, 16> kNames{{
    {kAttrState, "state"},
    {kAttrCurrentState, "current state"},
    {kAttrPathMtu, "path mtu"},
    {kAttrRemoteQpn, "remote qpn"},
    {kAttrRqPsn, "rq psn"},
    {kAttrSqPsn, "sq psn"},
    {kAttrAddress, "address"},
    {kAttrAccess, "access flags"},
    {kAttrTimeout, "timeout"},
    {kAttrRetryCount, "retry count"},
    {kAttrRnrRetry, "rnr retry"},
    {kAttrMinRnrTimer, "min rnr timer"},
    {kAttrMaxRdAtomic, "max rd atomic"},
    {kAttrMaxDestRdAtomic, "max dest rd atomic"},
    {kAttrQkey, "qkey"},
    {kAttrDrainedEvent, "drained event"},
}};

std::string names(std::uint32_t mask) {
  std::string text;
  for (const auto& [bit, name] : kNames) {
    if ((mask & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text.empty() ? "unknown attributes" : text;
}

}  // namespace

wire::Result<void> check_transition(QpType type, QpState from, QpState to, std::uint32_t mask) {
  std::uint32_t required = 0;
  std::uint32_t optional = 0;
  if (to != QpState::kReset && to != QpState::kErr) {
    const Transition* found = nullptr;
    for (const Transition& t : kTransitions) {
      const bool exists = t.from != QpState::kSqe || type != QpType::kRc;
      if (exists && t.from == from && t.to == to) found = &t;
    }
    if (found == nullptr) {
      return wire::invalid(std::string("no transition from ") + to_string(from) + " to " +
                           to_string(to) + ": go reset, init, rtr, rts");
    }
    required = found->required & attributes_of(type);
    optional = found->optional & attributes_of(type);
  }
  const std::string step =
      std::string(" on the way from ") + to_string(from) + " to " + to_string(to);
  if (const std::uint32_t missing = required & ~mask; missing != 0) {
    return wire::invalid("set also " + names(missing) + step);
  }
  if (const std::uint32_t extra = mask & ~(required | optional | kAlways); extra != 0) {
    return wire::invalid("do not set " + names(extra) + step);
  }
  return {};
}

wire::Result<void> check_values(const QpAttr& attr, std::uint32_t mask, std::uint32_t max_mtu) {
  const auto has = [mask](std::uint32_t bit) { return (mask & bit) != 0; };
  if (has(kAttrPathMtu) && (!wire::is_path_mtu(attr.path_mtu) || attr.path_mtu > max_mtu)) {
    return wire::invalid("path mtu must be 256, 512, 1024, 2048 or 4096 and at most " +
                         std::to_string(max_mtu));
  }
  if (has(kAttrAddress) && attr.remote_ip.is_unset())
    return wire::invalid("remote address is unset");
  constexpr std::uint32_t kAccessBits = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;
  if (has(kAttrAccess) && (attr.access & ~kAccessBits) != 0)
    return wire::invalid("unknown access flags");
  if (has(kAttrTimeout) && attr.timeout_code > 31)
    return wire::invalid("timeout must be at most 31");
  if (has(kAttrRetryCount) && attr.retry_count > 7)
    return wire::invalid("retry count must be at most 7");
  if (has(kAttrRnrRetry) && attr.rnr_retry > 7) return wire::invalid("rnr retry must be at most 7");
  if (has(kAttrMinRnrTimer) && attr.min_rnr_timer > 31) {
    return wire::invalid("min rnr timer must be at most 31");
  }
  if ((has(kAttrMaxRdAtomic) && attr.max_rd_atomic > kMaxRdAtomic) ||
      (has(kAttrMaxDestRdAtomic) && attr.max_dest_rd_atomic > kMaxRdAtomic)) {
    return wire::invalid("max rd atomic must be at most " + std::to_string(kMaxRdAtomic));
  }
  return {};
}

}  // namespace cepheus::rnic
